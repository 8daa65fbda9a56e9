"""Messages of a node are handled in forks of a process that has imported what handles them.

Flower starts a Python process for every message, which imports torch and this package before it does anything: seconds
of a core, nine times a round. Here a fork server (multiprocessing's) imports them once; a message then costs a fork.
What is forked is still a process of its own: it ends with its message and shares no memory with the next. Where the
node says that it has a message (federated/flower/supernode.py) nobody waits for the next look.

A module that is imported already is not imported again from what a run ships, so a node handles messages by the code
that is installed on it. That is no defence: what is imported later may still come from the run.
"""

from __future__ import annotations

import os
import select
import time
from multiprocessing import active_children, get_context
from types import SimpleNamespace

from flwr.cli.install import install_from_fab
from flwr.supercore.cli.flower_superexec import flower_superexec
from flwr.supercore.constant import TaskType
from flwr.supercore.superexec import run_superexec
from flwr.supercore.superexec.executor import ExecutionSpec, LaunchResult, SubprocessExecutor
from flwr.supercore.tls import validate_and_resolve_root_certificates
from flwr.supernode.runtime import run_clientapp as runtime

from federated.flower.archives import unpacked
from federated.flower.object_pulls import ask_sooner

NAME = "federated.flower.forking_executor"  # `__name__` is `__main__` where it is started
# Each fork runs the main module again, so what that imports is here, too; the last two are imported on first use.
PRELOADED = ["federated.flower.client_app", NAME, runtime.__name__, "httpcore", "numpy.ma"]
POLL, POLL_SECONDS = "FLWR_SUPEREXEC_TASK_POLL_INTERVAL", 1.0
WOKEN_BY, MOST_READ = "SLUICE_WOKEN_BY", 64  # an inherited pipe's number


class ForkingExecutor(SubprocessExecutor):
    """Client messages are forked; whatever else Flower asks for is started as Flower does."""

    def __init__(self) -> None:
        self._processes = get_context("forkserver")
        self._processes.set_forkserver_preload(PRELOADED)

    def launch(self, spec: ExecutionSpec) -> LaunchResult:
        if spec.task_type != TaskType.CLIENT_APP:
            return super().launch(spec)
        self._processes.Process(target=handle, args=(spec,), daemon=True).start()
        return LaunchResult.accepted()

    def reconcile(self) -> None:
        """Takes leave of children that have ended."""
        active_children()


def handle(spec: ExecutionSpec) -> None:
    """One message, in a process of its own."""
    ask_sooner()
    vars(runtime)[install_from_fab.__name__] = unpacked
    runtime.run_clientapp(
        runtime_api_address=spec.runtime_api_address, token=spec.token, insecure=spec.insecure,
        certificates=validate_and_resolve_root_certificates(spec.root_certificates_path, spec.insecure),
        runtime_dependency_install=spec.runtime_dependency_install,
    )


def main() -> None:
    """`flower-superexec` with its own arguments, and this executor, which looks for a task when its node has one."""
    os.environ.setdefault(POLL, str(POLL_SECONDS))
    module = vars(run_superexec)
    module["get_executor"] = lambda *_, **__: ForkingExecutor()
    if woken := os.environ.pop(WOKEN_BY, ""):
        module["time"] = SimpleNamespace(sleep=lambda seconds: wait(int(woken), seconds))
    flower_superexec()


def wait(pipe: int, seconds: float) -> None:
    """Until something comes through the pipe, or so long."""
    if select.select([pipe], [], [], seconds)[0] and not os.read(pipe, MOST_READ):
        time.sleep(seconds)  # the node has ended


if __name__ == "__main__":
    main()
