"""Messages are forked from a process that has the client's code; an ended child leaves nothing behind."""

from __future__ import annotations

from multiprocessing import active_children

from flwr.supercore.constant import TaskType
from flwr.supercore.superexec.executor import ExecutionSpec, LaunchResultStatus

from federated.flower.forking_executor import ForkingExecutor

NOBODY = "127.0.0.1:1"


def spec(task_type):
    return ExecutionSpec(
        task_type=task_type, runtime_api_address=NOBODY, token="token", insecure=True, root_certificates_path=None,
        runtime_dependency_install=False, parent_pid=None, suppress_output=True, task_id=1)


def test_a_message_is_handled_in_a_process_of_its_own_that_is_taken_leave_of():
    executor, before = ForkingExecutor(), len(active_children())
    assert executor.launch(spec(TaskType.CLIENT_APP)).status is LaunchResultStatus.ACCEPTED
    children = active_children()
    assert len(children) == before + 1
    child = children[-1]
    child.terminate()
    child.join(60)
    assert not child.is_alive()
    executor.reconcile()
    assert len(active_children()) == before


def test_there_is_always_capacity():
    assert ForkingExecutor().get_eligible_capacity({TaskType.CLIENT_APP}) == ({TaskType.CLIENT_APP}, set())
