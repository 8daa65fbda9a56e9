"""A SuperNode that is quick on short phases: `flower-supernode` with its own arguments and two things changed.

Flower's SuperNode asks for messages every three seconds and starts a Python process for each; a round has nine phases.
This one asks every `PULL_SECONDS` and hands messages to `forking_executor`. Neither has a setting in Flower 1.41, so
two names of its module are replaced before it starts; `tests/federated/flower/test_supernode.py` says which.
"""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace

from flwr.supernode import start_client_internal
from flwr.supernode.cli import flower_supernode

from federated.flower import forking_executor
from federated.flower.object_pulls import ask_sooner

PULL_SECONDS = 0.2
SUPEREXEC = "flower-superexec"


def run(arguments: list[str]) -> None:
    """Returns when the node is stopped."""
    quicken()
    sys.argv = ["flower-supernode", *arguments]
    flower_supernode()


def quicken() -> None:
    """What Flower's node sleeps and starts goes through here from now on, in this process."""
    ask_sooner()
    module = vars(start_client_internal)
    module["time"] = SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, PULL_SECONDS)))
    module["subprocess"] = SimpleNamespace(Popen=start)


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """The executor in place of Flower's, with the same arguments."""
    if command[0] == SUPEREXEC:
        command = [sys.executable, "-m", forking_executor.__name__, *command[1:]]
    return subprocess.Popen(command)
