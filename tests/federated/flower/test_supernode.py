"""A quick SuperNode: the very names that are replaced still stand in Flower's module, and what it starts is ours."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time

import pytest
from flwr.supernode import start_client_internal
from flwr.supernode.servicer.runtime import runtime_handlers

from federated.flower import supernode


@pytest.fixture
def quickened(monkeypatch):
    for name in ("time", "subprocess", "pull_objects"):
        monkeypatch.setattr(start_client_internal, name, getattr(start_client_internal, name))
    monkeypatch.setattr(runtime_handlers, "fab_to_proto", runtime_handlers.fab_to_proto)
    monkeypatch.setattr(supernode, "WAKING", [])
    supernode.quicken()
    return start_client_internal


def test_flowers_node_sleeps_and_starts_by_nothing_else():
    source = inspect.getsource(start_client_internal)
    assert {line.split("time.")[1].split("(")[0] for line in source.splitlines() if "time." in line
            and "time.sleep" in line} == {"sleep"}
    assert source.count("subprocess.") == source.count("subprocess.Popen(")
    assert f'"{supernode.SUPEREXEC}"' in source


def test_flowers_node_pulls_what_a_message_holds_once_the_task_is_there():
    source = inspect.getsource(start_client_internal)
    assert source.count(" pull_objects(") == 1
    assert source.index("state.create_task(") < source.index("state.store_message(message)") < source.index(
        " pull_objects(")


def test_what_flower_sleeps_tells_a_look_for_messages_from_one_for_a_reply():
    source = inspect.getsource(start_client_internal)
    assert sorted({float(part.split(")")[0]) for part in source.split("time.sleep(")[1:]}) == [0.5, 3.0]


def test_a_message_that_was_pulled_wakes_the_executor(quickened):
    woken, waking = os.pipe()
    supernode.WAKING.append(waking)
    assert quickened.pull_objects(["a"], lambda name: name.encode()) == {"a": b"a"}
    assert os.read(woken, 10) == b"1"
    os.close(woken)
    assert quickened.pull_objects(["a"], lambda name: name.encode()) == {"a": b"a"}  # one that has ended
    os.close(waking)


def test_a_node_asks_again_within_the_interval(quickened):
    started = time.monotonic()
    quickened.time.sleep(60)
    assert supernode.PULL_SECONDS <= time.monotonic() - started < 30
    started = time.monotonic()
    for _ in range(20):
        quickened.time.sleep(0.5)
    assert time.monotonic() - started < 10


@pytest.mark.slow
def test_the_executor_takes_the_arguments_of_flowers(quickened):
    made = quickened.subprocess.Popen([supernode.SUPEREXEC, "--help"])
    assert made.args[:3] == [sys.executable, "-m", "federated.flower.forking_executor"]
    assert made.args[3:] == ["--help"]
    assert made.wait(60) == 0


def test_other_commands_are_started_as_they_stand(quickened):
    made = quickened.subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    assert isinstance(made, subprocess.Popen)
    assert made.wait(60) == 3
