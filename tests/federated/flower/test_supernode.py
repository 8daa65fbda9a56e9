"""A quick SuperNode: the very names that are replaced still stand in Flower's module, and what it starts is ours."""

from __future__ import annotations

import inspect
import subprocess
import sys
import time

import pytest
from flwr.supernode import start_client_internal

from federated.flower import supernode


@pytest.fixture
def quickened(monkeypatch):
    for name in ("time", "subprocess"):
        monkeypatch.setattr(start_client_internal, name, getattr(start_client_internal, name))
    supernode.quicken()
    return start_client_internal


def test_flowers_node_sleeps_and_starts_by_nothing_else():
    source = inspect.getsource(start_client_internal)
    assert {line.split("time.")[1].split("(")[0] for line in source.splitlines() if "time." in line
            and "time.sleep" in line} == {"sleep"}
    assert source.count("subprocess.") == source.count("subprocess.Popen(")
    assert f'"{supernode.SUPEREXEC}"' in source


def test_a_node_asks_again_within_the_interval(quickened):
    started = time.monotonic()
    quickened.time.sleep(60)
    assert time.monotonic() - started < 30


def test_the_executor_takes_the_arguments_of_flowers(quickened):
    made = quickened.subprocess.Popen([supernode.SUPEREXEC, "--help"])
    assert made.args[:3] == [sys.executable, "-m", "federated.flower.forking_executor"]
    assert made.args[3:] == ["--help"]
    assert made.wait(60) == 0


def test_other_commands_are_started_as_they_stand(quickened):
    made = quickened.subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    assert isinstance(made, subprocess.Popen)
    assert made.wait(60) == 3
