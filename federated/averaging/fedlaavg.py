"""FedLaAvg: the mean of everybody's latest gradient, however rarely they come (Yan et al., arXiv 2002.07399).

    server   x, the running mean g of the latest gradients of all N clients, when each client was seen last
    client   g_i, the gradient sum that the server has of it

    each round: of the clients there, the K longest unseen; each descends C steps from x and uploads
        g_new - g_i,  g_new = (x - x_local) / gamma,  its loss scaled by N n_i / sum(n)
    g += (1 / N) sum(differences);  x -= gamma g

The server needs the sum of the differences alone, so they can be masked as any update. **Commit rule**: a client takes
g_new for g_i only when the next message says that the server accepted that upload; otherwise g would be wrong for ever.

What a server says of an upload is a lever: where a model is sent again, the difference of every client is near zero but
that of one whose upload is said to be missing. So nobody is asked for all anew once something was accepted (a server
that begins anew begins a run of another name, which the masks of all clients are bound to), and who revealed what opens
a sum that its upload is in takes it for accepted and refuses to hear otherwise, but in a round of the same clients that
says so to all of them.

With submodels g_i is a sparse map row -> vector. A difference lies on its old rows and its new ones, so both must be
declared; what was not declared in a round stays as it was. Dense parts are divided by N, a row by the number of clients
that hold it, or cold rows would freeze; N are the clients that came, not the keys that were published. What is sent is
rounded and clipped: a client remembers what it **sent**, so that the server's mean is the mean of the clients'
memories, and the rest follows with the next upload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from contracts.errors import ProtocolError


@dataclass(frozen=True)
class Gradient:
    """`dense` [D], `rows` [R, width] at sorted `places` [R]."""

    dense: np.ndarray
    places: np.ndarray
    rows: np.ndarray

    @classmethod
    def of_dense(cls, dense: np.ndarray) -> Gradient:
        """Of a model without rows."""
        return cls(dense, np.empty(0, dtype=np.int64), np.empty((0, 0)))

    def at(self, places: np.ndarray) -> np.ndarray:
        """The rows at these sorted places, zero where there is none: [P, width]."""
        rows = np.zeros((len(places), self.rows.shape[1]))
        _, here, there = np.intersect1d(places, self.places, assume_unique=True, return_indices=True)
        rows[here] = self.rows[there]
        return rows

    def plus(self, other: Gradient) -> Gradient:
        """Rows that add up to zero are forgotten."""
        places = np.union1d(self.places, other.places)
        rows = self.at(places) + other.at(places)
        kept = rows.any(axis=1)
        return Gradient(self.dense + other.dense, places[kept], rows[kept])


AsSent = Callable[[Gradient], Gradient]


@dataclass
class GradientMemory:
    """One client's side. `committed` is what the server has of it, since round `number` (0: nothing); `pending` what it
    sent last, in which round, and does not yet know the fate of; `opened`: it revealed what opens the sum with it."""

    committed: Gradient
    pending: tuple[int, Gradient] | None = None
    number: int = 0
    opened: bool = False

    @classmethod
    def empty(cls, dense: int, width: int = 0) -> GradientMemory:
        """Of a client that has sent nothing: zero everywhere."""
        return cls(Gradient(np.zeros(dense), np.empty(0, dtype=np.int64), np.zeros((0, width))))

    def settle(self, accepted: int, voided: bool = False) -> None:
        """`accepted`: the round of this client's last upload that the server has (0: none). Raises ProtocolError where
        the server speaks of a round that this client knows nothing of (its running mean would be wrong for ever), and
        where it denies what was opened (one client's gradient would be the whole difference of two sums), unless it is
        `voided` for all that were in that sum."""
        if self.pending is not None and self.opened and accepted != self.pending[0] and not voided:
            raise ProtocolError(f"this client helped to open its upload of round {self.pending[0]}, the server says "
                                f"that it has that of round {accepted}; refused. Begin the run anew in another folder")
        if self.pending is not None and self.pending[0] == accepted:
            self.committed = self.pending[1]
        elif accepted != self.number:
            known = [self.number, *([] if self.pending is None else [self.pending[0]])]
            raise ProtocolError(f"the server has this client's upload of round {accepted}, it remembers {known}; "
                                "refused: one of the two was put back to an older state")
        self.number, self.pending, self.opened = accepted, None, False

    def declared(self, places: np.ndarray) -> np.ndarray:
        """Rows of the next difference, where the client now uses `places`."""
        return np.union1d(places, self.committed.places)

    def difference(
        self, number: int, gradient: Gradient, declared: np.ndarray | None = None, as_sent: AsSent = lambda exact: exact
    ) -> Gradient:
        """What to upload in round `number`, on the rows `declared` (None: the old and the new ones), as it arrives."""
        places = self.declared(gradient.places) if declared is None else declared
        exact = Gradient(
            gradient.dense - self.committed.dense, places, gradient.at(places) - self.committed.at(places)
        )
        sent = as_sent(exact)
        self.pending, self.opened = (number, self.committed.plus(sent)), False
        return sent


@dataclass
class LatestAverage:
    """The server's side: the model `dense` [D] and `rows` [space, width], moved at `rate` gamma. `clients` N (None: the
    whole `population`) were there when it was counted how many of them hold each row, `holders` [space]; where more
    than those have sent something, N and the holders grow in proportion."""

    dense: np.ndarray
    rows: np.ndarray
    population: int
    rate: float
    holders: np.ndarray
    clients: int | None = None
    seen: np.ndarray = field(init=False)
    accepted: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.seen = np.zeros(self.population, dtype=np.int64)
        self.accepted = np.zeros(self.population, dtype=np.int64)
        self._mean_dense, self._mean_rows = np.zeros(self.dense.shape), np.zeros(self.rows.shape)

    @classmethod
    def of_dense(cls, dense: np.ndarray, population: int, rate: float) -> LatestAverage:
        """Of a model without rows."""
        return cls(dense, np.zeros((0, 0)), population, rate, np.zeros(0))

    def choose(self, available: Sequence[int], count: int) -> list[int]:
        """The longest unseen, the smaller number first where two are equal."""
        return sorted(sorted(available, key=lambda client: (self.seen[client], client))[:count])

    def note_seen(self, number: int, clients: Sequence[int]) -> None:
        """Counts as seen, so that clients that never reply do not hold a place in every round."""
        self.seen[list(clients)] = number

    def state(self) -> dict[str, np.ndarray]:
        """What a restart needs beside the model."""
        return {"seen": self.seen, "accepted": self.accepted, "mean_dense": self._mean_dense,
                "mean_rows": self._mean_rows}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """The inverse of `state`."""
        self.seen, self.accepted = np.array(state["seen"]), np.array(state["accepted"])
        self._mean_dense, self._mean_rows = np.array(state["mean_dense"]), np.array(state["mean_rows"])

    def apply(self, number: int, clients: Sequence[int], dense: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Sums of the differences of the clients whose uploads arrived: `dense` [D] and `rows` [space, width]."""
        self.note_seen(number, clients)
        self.accepted[list(clients)] = number
        counted = self.population if self.clients is None else self.clients
        self._mean_dense += dense / counted
        if rows is not None:
            self._mean_rows += rows / np.maximum(self.holders, 1)[:, None]
        rate = self.rate / max(1.0, np.count_nonzero(self.accepted) / counted)
        self.dense = self.dense - rate * self._mean_dense
        self.rows = self.rows - rate * self._mean_rows
