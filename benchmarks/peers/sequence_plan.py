"""What one run of one sequence encoder is told, and the log it reads; in the peer's environment too: numpy alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from benchmarks.peers.plan import PlanFile

LISTED = 10  # items recommended to each user


@dataclass(frozen=True, kw_only=True)
class SequencePlan(PlanFile):
    """`rows`: the file of the log. `batch`: predictions of an update, about; `users`: those whose sequences make as
    many. `negatives` of a prediction, none: all items. `out`: where recommendations and outcome go."""

    rows: str
    out: str
    seed: int
    threads: int
    batch: int
    users: int
    negatives: int | None
    width: int
    learning_rate: float
    length: int = 50
    blocks: int = 1
    heads: int = 1
    dropout: float = 0.3
    epochs: int = 5


class SequenceLog(NamedTuple):
    """`items` [A] int64 of user u lie at offsets[u]:offsets[u + 1] in their order; ids are below `table`. All but the
    last of each user `asked` [U] train, and the last is to be recommended. Users who are not asked train whole."""

    offsets: np.ndarray
    items: np.ndarray
    asked: np.ndarray
    table: int

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **self._asdict())
        return path

    @classmethod
    def read(cls, path: str | Path) -> Self:
        with np.load(path) as held:
            return cls(held["offsets"], held["items"], held["asked"], int(held["table"]))

    @property
    def owners(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @property
    def tested(self) -> np.ndarray:
        """bool [A]."""
        found = np.zeros(len(self.items), bool)
        found[self.offsets[self.asked + 1] - 1] = True
        return found

    @property
    def targets(self) -> np.ndarray:
        """Items [U], one of each user who is asked."""
        return self.items[self.offsets[self.asked + 1] - 1]

    def predictions(self, length: int) -> int:
        """Of an epoch: an action each that trains, of the latest `length` + 1, but a user's first."""
        trained = np.bincount(self.owners[~self.tested], minlength=len(self.offsets) - 1)
        return int(np.maximum(np.minimum(trained, length + 1) - 1, 0).sum())
