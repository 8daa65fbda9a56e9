"""What a patient server proves of who holds what, from nothing but what every round shows it: an elimination attack.

    a row that is not in a round's union       nobody whose words are in the union's sum holds it
    a row whose opened count is 0              nobody who named it, and is in the sum, holds it
    a row in the union, or of a count above 0  at least one of those holds it: the last who is not ruled out

Answers are deniable; what they are summed to is not. The curve says which share of the pairs (client, row it holds) is
proven after so many rounds, from unions alone, from opened sums alone and from both. Who deviates learns more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from contracts.summaries.federated import LeakCurve

MOST_CELLS = 200_000_000


@dataclass
class Elimination:
    """What is known of `clients` x `rows` pairs. Where that is too many, every `stride`-th row is watched."""

    clients: int
    rows: int
    ruled_out: np.ndarray = field(init=False)
    _witnesses: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ruled_out = np.zeros((self.clients, len(range(0, self.rows, self.stride))), dtype=bool)

    @property
    def stride(self) -> int:
        """Of the rows that are watched."""
        return max(1, -(-self.clients * self.rows // MOST_CELLS))

    def observe(self, members: Sequence[int], named: np.ndarray, somebody: np.ndarray) -> None:
        """`named` bool [members, rows]: whose words a row's sum has; `somebody` bool [rows]: whether it is above 0."""
        who = np.asarray(members)
        named, somebody = named[:, :: self.stride], somebody[:: self.stride]
        self.ruled_out[who] |= named & ~somebody
        self._witnesses.append((who, np.packbits(named & somebody, axis=1)))

    def proven(self, held: np.ndarray) -> float:
        """Share of the pairs of `held` bool [clients, rows] that are certain."""
        watched, certain = held[:, :: self.stride], np.zeros_like(self.ruled_out)
        for who, packed in self._witnesses:
            left = np.unpackbits(packed, axis=1, count=watched.shape[1]).astype(bool) & ~self.ruled_out[who]
            alone = left & (left.sum(axis=0) == 1)
            certain[who] |= alone
        return float((certain & watched).sum() / max(int(watched.sum()), 1))


class LeakWatch:
    """The same attack with unions, with sums and with both; `held` bool [clients, rows] says what is true."""

    def __init__(self, held: np.ndarray, rounds: int) -> None:
        self.held, self.points = held, points_of(rounds)
        self._known = {kind: Elimination(*held.shape) for kind in ("unions", "sums", "both")}
        self._shares: dict[str, list[float]] = {kind: [] for kind in self._known}
        self._seen: list[int] = []
        self._round = 0

    def observe(
        self, in_union: Sequence[int], union: np.ndarray, named: Mapping[int, np.ndarray], counted: np.ndarray | None
    ) -> None:
        """One round: whose words the union has and which rows it is; who of the sum named which rows, and the rows
        whose opened count is above 0 (None: no counts are opened)."""
        rows = self.held.shape[1]
        if len(in_union):
            for kind in ("unions", "both"):
                self._known[kind].observe(in_union, np.ones((len(in_union), rows), bool), of_rows(union, rows))
        if counted is not None and named:
            for kind in ("sums", "both"):
                self._known[kind].observe(
                    list(named), np.stack([of_rows(mine, rows) for mine in named.values()]), of_rows(counted, rows))
        self._round += 1
        if self._round in self.points:
            self._seen.append(self._round)
            for kind, known in self._known.items():
                self._shares[kind].append(known.proven(self.held))

    def curve(self) -> LeakCurve:
        """Up to the last point that was reached."""
        return LeakCurve(rounds=tuple(self._seen), **{kind: tuple(each) for kind, each in self._shares.items()})


def of_rows(rows: np.ndarray, count: int) -> np.ndarray:
    """bool [count], true at these."""
    mask = np.zeros(count, dtype=bool)
    mask[rows] = True
    return mask


def points_of(rounds: int) -> set[int]:
    """Some twelve rounds, evenly on a logarithmic scale, the last among them."""
    return set(np.unique(np.geomspace(1, max(rounds, 1), 12).round().astype(int)).tolist())
