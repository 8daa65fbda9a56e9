"""Bytes per phase and direction as they passed the wire, and what the formulas say they must be.

Every array costs its payload and at most `FRAMING` bytes of headers; the formulas count payloads:

    keys          up 204                                         down 36
    shares        up 92 k                                        down 208 k + 20 n + 4, k neighbours, n clients
    union         up 4 m                                         down 96 k, m words of 32 bits
    agree_union   up 64                                          down n / 8
    open_union    up 16 k                                        down 68 q, q more than two thirds of n
    choose        up U / 8                                       down M / 8, U rows in the union of M private ones
    train         up 4 (D + 4 + R (d + 1))                       down 4 (D + R d) + 4 k + k R / 8
    agree_update  up 64                                          down n / 8
    open_update   up 16 k                                        down 68 q
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from contracts.errors import ProtocolError
from contracts.summaries.federated import BothWays
from federated.protocol.messages import PHASES, Message, Phase, parted_phases
from federated.secure_aggregation.roster_consistency import quorum

FRAMING = 260  # of one array: its npy header, type and name, and its share of the message's metadata
MESSAGE_FRAMING = 320


@dataclass
class ByteCount:
    """`up` and `down`: phase -> bytes of each message."""

    up: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    down: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, phase: Phase, direction: str, message: Message, wire: int) -> None:
        """Of a message of two phases each gets its payload, and of the framing by its arrays. Raises ProtocolError when
        the wire carried more than payload and framing: something is sent unaccounted."""
        payload = sum(array.nbytes for array in message.values())
        allowed = payload + FRAMING * len(message) + MESSAGE_FRAMING
        if not payload < wire <= allowed:
            raise ProtocolError(f"{phase} {direction}: {wire} bytes for a payload of {payload}; {allowed} are the most")
        for each, part in parted_phases(phase, message).items():
            own = sum(array.nbytes for array in part.values())
            getattr(self, direction)[each].append(own + (wire - payload) * len(part) / len(message))

    def per_phase(self) -> dict[str, BothWays]:
        """Mean bytes a message, of the phases that were sent."""
        return {
            phase: BothWays(up=_mean(self.up.get(phase)), down=_mean(self.down.get(phase)))
            for phase in PHASES if phase in self.down
        }

    def per_client_round(self) -> float:
        """Bytes both ways of a client that takes part to the end."""
        return both_ways(self.per_phase())

    def take(self) -> dict[str, BothWays]:
        """What was counted since the last time, per phase; counting starts anew."""
        counted = self.per_phase()
        self.up.clear()
        self.down.clear()
        return counted


def both_ways(phases: Mapping[str, BothWays]) -> float:
    """All bytes of the phases of a client's round."""
    return sum(sent.up + sent.down for sent in phases.values())


def mean_of_rounds(rounds: Sequence[Mapping[str, BothWays]]) -> dict[str, BothWays]:
    """Mean bytes a message of each phase over the rounds that had it."""
    of_phase = {phase: [sent[phase] for sent in rounds if phase in sent] for phase in PHASES}
    return {
        phase: BothWays(up=fmean(sent.up for sent in each), down=fmean(sent.down for sent in each))
        for phase, each in of_phase.items() if each
    }


def _mean(values: list[float] | None) -> float:
    return float(fmean(values)) if values else 0.0


def predicted(
    *, code: int, private: int, union: int, rows: float, dense: int, width: int, neighbours: int, clients: int,
    per_row: bool, masked: bool = True, choose: bool = True,
) -> dict[str, tuple[float, float]]:
    """Phase -> payload bytes (up, down) of a client by the formulas above, without framing and with nobody lost."""
    k, bits = neighbours, np.ceil(clients / 8)
    boxes, both = 96 * k * masked, k * np.ceil(rows / 8) if per_row else 0
    payload: dict[str, tuple[float, float]] = {}
    if masked:
        payload |= {"keys": (204, 36), "shares": (92 * k, 208 * k + 20 * clients + 4)}
    if choose:
        payload |= {"union": (4 * code, boxes), "choose": (np.ceil(union / 8), np.ceil(private / 8))}
        boxes = 0
    if choose and masked:
        payload |= {"agree_union": (64, bits), "open_union": (16 * k, 68 * quorum(clients))}
    peers = (4 * k + both) * masked
    payload["train"] = (4 * (dense + 4 + rows * (width + 1)), 4 * (dense + rows * width) + peers + boxes)
    if masked:
        payload |= {"agree_update": (64, bits), "open_update": (16 * k, 68 * quorum(clients))}
    return payload
