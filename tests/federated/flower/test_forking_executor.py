"""Messages are forked from a process that has the client's code; an ended child leaves nothing behind."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time
from multiprocessing import active_children

import pytest
from flwr.supercore.constant import TaskType
from flwr.supercore.superexec import run_superexec
from flwr.supercore.superexec.executor import ExecutionSpec, LaunchResultStatus
from flwr.supernode.runtime import run_clientapp as runtime

from federated.flower import forking_executor
from federated.flower.forking_executor import NAME, PRELOADED, ForkingExecutor

NOBODY = "127.0.0.1:1"


def spec(task_type):
    return ExecutionSpec(
        task_type=task_type, runtime_api_address=NOBODY, token="token", insecure=True, root_certificates_path=None,
        runtime_dependency_install=False, parent_pid=None, suppress_output=True, task_id=1)


@pytest.mark.slow
def test_a_message_is_handled_in_a_process_of_its_own_that_is_taken_leave_of():
    executor, before = ForkingExecutor(), set(active_children())
    assert executor.launch(spec(TaskType.CLIENT_APP)).status is LaunchResultStatus.ACCEPTED
    [child] = set(active_children()) - before
    child.terminate()
    child.join(60)
    assert not child.is_alive()
    executor.reconcile()
    assert set(active_children()) <= before


@pytest.mark.slow
def test_a_fork_finds_imported_what_its_main_module_imports():
    """Each child of a fork server runs the module that its parent was started with: half a second where Flower's
    commands are imported for it."""
    program = f"""
import importlib, runpy, sys
for name in {PRELOADED!r}:
    importlib.import_module(name)
before = set(sys.modules)
runpy.run_module({forking_executor.__name__!r}, run_name="__mp_main__")
print(sorted(set(sys.modules) - before))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
    assert forking_executor.__name__ == NAME


def test_there_is_always_capacity():
    assert ForkingExecutor().get_eligible_capacity({TaskType.CLIENT_APP}) == ({TaskType.CLIENT_APP}, set())


def test_flower_unpacks_by_the_name_that_is_replaced_and_asks_for_nothing_of_it():
    source = inspect.getsource(runtime)
    assert source.count("install_from_fab(") == 1
    assert "    install_from_fab(fab.content, skip_prompt=True)\n" in source


def test_who_waits_goes_on_when_its_node_says_so_and_not_at_once_where_that_has_ended():
    woken, waking = os.pipe()
    started = time.monotonic()
    os.write(waking, b"11")
    forking_executor.wait(woken, 60.0)
    assert time.monotonic() - started < 30
    started = time.monotonic()
    forking_executor.wait(woken, 0.2)  # what was said twice is heard once
    os.close(waking)
    forking_executor.wait(woken, 0.2)
    assert time.monotonic() - started >= 0.4
    os.close(woken)


def test_flowers_executor_sleeps_by_the_name_that_is_replaced_and_after_each_look():
    source = inspect.getsource(run_superexec)
    assert source.count("time.sleep(task_poll_interval)") == source.count(" time.") == 1
