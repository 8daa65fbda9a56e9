"""What a client remembers: the round with the highest number that it was asked in, and, where rounds overlap, the one
before it.

    {"round": .., "roster": .., "done keys": ..}                 of the newest round
    {"before round": .., "before roster": .., ..}                of the one before, while it is not done

All of it is one message, so that a client may be a new process at every phase. Of a third round nothing is remembered,
and of one with a lower number than those that are nothing is heard: no mask is made twice.
"""

from __future__ import annotations

import numpy as np

from contracts.errors import ProtocolError
from federated.protocol.messages import ROUND, Message, Phase

BEFORE, LAST = "before ", "done open_update"


def rounds_of(memory: Message) -> tuple[Message, Message]:
    """What is remembered of the newest round, and of the one before; empty where there is none."""
    newest = {name: value for name, value in memory.items() if not name.startswith(BEFORE)}
    before = {name.removeprefix(BEFORE): value for name, value in memory.items() if name.startswith(BEFORE)}
    return newest, before


def memory_of(newest: Message, before: Message) -> Message:
    """The inverse of `rounds_of`."""
    return newest | {BEFORE + name: value for name, value in before.items()}


def number_of(remembered: Message) -> int:
    """Of the round; -1 where nothing is remembered."""
    return int(remembered[ROUND][()]) if ROUND in remembered else -1


def begun(number: np.ndarray, newest: Message, overlap: bool) -> tuple[Message, Message]:
    """A new round, and what stays remembered of the newest until then, unless that is done."""
    return {ROUND: number}, newest if overlap and LAST not in newest else {}


def after(phase: Phase, kept: Message, newest: Message, before: Message) -> Message:
    """The memory when `phase` of the round in `kept` is done, which is the newest or the one before. Who trains in a
    round has done with the one before; who has opened its update has done with that."""
    if number_of(kept) >= number_of(newest):
        return memory_of(kept, {} if phase == "train" else before)
    return memory_of(newest, {} if phase == "open_update" else kept)


def remembered_of(number: int, phase: Phase, newest: Message, before: Message) -> Message:
    """A copy of what is remembered of the round of this number. Raises ProtocolError where it is nothing, or the phase
    is done."""
    found = next((each for each in (newest, before) if number_of(each) == number), None)
    if found is None or f"done {phase}" in found:
        raise ProtocolError(f"{phase} of round {number}: this client has done it, its last round is "
                            f"{number_of(newest)}; refused")
    return dict(found)
