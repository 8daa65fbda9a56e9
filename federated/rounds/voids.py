"""FedLaAvg's attempts that came to nothing after clients had helped to open them, and who has yet to hear so.

A client believes that an attempt is void in a round that has more than two thirds of the clients of its sum
(federated/protocol/gradient_store.py); told otherwise it refuses. So they are asked together, and of the others, who
owe no hearing, as many as there is room for. All clients of a round are told of the same attempts. A server that is
started again knows them still, or those who owe hearing would refuse every round that they are asked in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from federated.secure_aggregation.roster_consistency import quorum


@dataclass
class Voids:
    """`uploads`: attempt -> whose it had; `owed`: client -> the attempt that it has yet to hear of."""

    uploads: dict[int, frozenset[int]] = field(default_factory=dict)
    owed: dict[int, int] = field(default_factory=dict)

    def note(self, number: int, clients: Collection[int]) -> None:
        """The attempt of this number had these clients' uploads and is void."""
        self.uploads[number] = frozenset(clients)
        self.owed |= dict.fromkeys(clients, number)

    def heard(self, clients: Collection[int]) -> None:
        """These took part in a round that was summed."""
        self.owed = {client: number for client, number in self.owed.items() if client not in set(clients)}
        self.uploads = {number: self.uploads[number] for number in set(self.owed.values())}

    def state(self) -> dict[str, np.ndarray]:
        """What a restart needs, int64: attempt and client of each upload [n, 2], client and attempt that it has yet to
        hear of [m, 2]."""
        uploads = [(number, client) for number, had in self.uploads.items() for client in sorted(had)]
        return {"void_uploads": _pairs(uploads), "void_owed": _pairs(list(self.owed.items()))}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """The inverse of `state`; nothing is void where it says nothing of it."""
        uploads, owed = (state.get(name, _pairs([])).tolist() for name in ("void_uploads", "void_owed"))
        self.uploads = {number: frozenset(client for of, client in uploads if of == number) for number, _ in uploads}
        self.owed = dict(owed)

    def together(self, there: Collection[int]) -> list[int]:
        """Sorted: those of them that are there and would believe it if they came together; none who would not."""
        come = set(there) & set().union(*self.uploads.values())
        while disbelieved := {number for number, spare in self._spare(come).items() if spare < 0}:
            kept = {client for client in come if self.owed.get(client) not in disbelieved}
            if kept == come:
                break
            come = kept
        return sorted(come) if self.told(come) else []

    def told(self, clients: Collection[int]) -> list[int]:
        """The attempts that these have yet to hear of."""
        return sorted({self.owed[client] for client in clients if client in self.owed})

    def spare(self, clients: Collection[int]) -> int:
        """How many of them may stay away, whichever they are, and the others believe it."""
        told = self.told(clients)
        return min((spare for number, spare in self._spare(clients).items() if number in told), default=len(clients))

    def _spare(self, clients: Collection[int]) -> Mapping[int, int]:
        return {number: len(had & set(clients)) - quorum(len(had)) for number, had in self.uploads.items()}


def _pairs(pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
