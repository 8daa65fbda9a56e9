"""A SuperNode that is quick on short phases: `flower-supernode` with its own arguments and four things changed.

Flower's SuperNode asks for messages every three seconds, starts a Python process for each, which finds out about it
within a second, and looks for its reply every half second; a round has nine phases. This one asks every `PULL_SECONDS`,
hands messages to `forking_executor`, wakes it by a pipe, and looks for replies, which cost no message, every
`REPLY_SECONDS`. What it sends with each message of a run's code is sent once (federated/flower/archives.py). None of it
has a setting in Flower 1.41, so names of its modules are replaced before it starts;
`tests/federated/flower/test_supernode.py` says which.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from flwr.supercore.inflatable.inflatable_utils import pull_objects
from flwr.supernode import start_client_internal
from flwr.supernode.cli import flower_supernode
from flwr.supernode.servicer.runtime import runtime_handlers

from federated.flower import forking_executor
from federated.flower.archives import sent_once
from federated.flower.object_pulls import ask_sooner

PULL_SECONDS, REPLY_SECONDS = 0.2, 0.02
LONG = 1.0  # what Flower sleeps at least between two looks for messages, and at most between two for a reply
SUPEREXEC = "flower-superexec"
WAKING: list[int] = []  # ends of pipes to the executors


def run(arguments: list[str]) -> None:
    """Returns when the node is stopped."""
    quicken()
    sys.argv = ["flower-supernode", *arguments]
    flower_supernode()


def quicken() -> None:
    """What Flower's node sleeps and starts goes through here from now on, in this process."""
    ask_sooner()
    module = vars(start_client_internal)
    module["time"] = SimpleNamespace(sleep=sleep)
    module["subprocess"] = SimpleNamespace(Popen=start)
    module["pull_objects"] = pulled
    vars(runtime_handlers)["fab_to_proto"] = sent_once


def sleep(seconds: float) -> None:
    """Between two looks of the node."""
    time.sleep(min(seconds, PULL_SECONDS if seconds >= LONG else REPLY_SECONDS))


def pulled(*arguments: Any, **named: Any) -> dict[str, bytes]:
    """Flower's own, after which a message is there to be handled."""
    found = pull_objects(*arguments, **named)
    for pipe in WAKING:
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(pipe, b"1")
    return found


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """The executor in place of Flower's, with the same arguments."""
    if command[0] != SUPEREXEC:
        return subprocess.Popen(command)
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    WAKING.append(waking)
    made = subprocess.Popen([sys.executable, "-m", forking_executor.__name__, *command[1:]], pass_fds=[woken],
                            env=os.environ | {forking_executor.WOKEN_BY: str(woken)})
    os.close(woken)
    return made
