"""Whether a client takes part now: idle, charged, on a network that costs nothing, or whatever its owner decides.

It is asked before a round is begun, so that no round is broken off for it: a device that is wanted for something else
in the middle of one is lost, as any other. The server learns that this client refused, and no reason.
"""

from __future__ import annotations

import shlex
import subprocess

from federated.protocol.round_client import Eligible

COMMAND_SECONDS = 10.0


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
