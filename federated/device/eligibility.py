"""Whether a client takes part now: idle, charged, on a network that costs nothing, or whatever its owner decides.

It is asked before a round is begun, so that no round is broken off for it: a device that is wanted for something else
in the middle of one is lost, as any other. The server learns that this client refused, and no reason.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable

import numpy as np

from contracts.errors import ProtocolError
from federated.protocol.messages import ROUND, Message

Eligible = Callable[[], bool]
COMMAND_SECONDS = 10.0
NO_ROUND: np.ndarray = np.empty(0)


def always() -> bool:
    """Takes part whenever it is asked."""
    return True


def by_command(command: str) -> Eligible:
    """Eligible while this command of the node's owner ends with 0, within COMMAND_SECONDS; always where it is empty."""
    words = shlex.split(command)

    def eligible() -> bool:
        try:
            done = subprocess.run(words, check=False, timeout=COMMAND_SECONDS, stdout=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    return eligible if words else always


def require_eligible(eligible: Eligible, message: Message, memory: Message) -> None:
    """Raises ProtocolError where the message begins another round than the one that is remembered, and the client does
    not take part now."""
    begins = ROUND not in memory or not np.array_equal(message.get(ROUND, NO_ROUND), memory[ROUND])
    if begins and not eligible():
        raise ProtocolError("this client takes part in no round now, as its owner's check says; refused")
