"""A user's vector from what they took, whoever they are: a factorisation as a bundle carries it, in numpy alone.

    summed   u = sum_i a_i / n^p                                                        n items, each once
    solved   u = (G + sum_i (w - 1) y_i y_i')^-1 sum_i w y_i,   G = Y'Y + l2 I          ALS of one user, weight w

Y are the items' vectors, a theirs as they speak for a user. An array 0-dimensional in memory has one element in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Arrays = dict[str, np.ndarray]


class State(Protocol):
    """`length`: how many of the latest items are read."""

    @property
    def length(self) -> int: ...

    def __call__(self, items: np.ndarray, events: np.ndarray | None = None) -> np.ndarray:
        """Ids int64 [n], oldest first, at least one, and what is told of them, int64 [n, E] -> float32 [d]."""


@dataclass(frozen=True, eq=False)
class Summed:
    """`inward` float32 [table, d]; `power` p."""

    inward: np.ndarray
    power: float
    length: int = 1000

    def __call__(self, items: np.ndarray, events: np.ndarray | None = None) -> np.ndarray:
        own = np.unique(items[-self.length:])
        return (self.inward[own].sum(0, dtype=np.float64) / len(own) ** self.power).astype(np.float32)

    def arrays(self) -> Arrays:
        return {"inward": self.inward, "power": np.array([self.power])}


@dataclass(frozen=True, eq=False)
class Solved:
    """`items` float32 [table, d]; `gram` float64 [d, d]; `weight` of an action over a cell without one."""

    items: np.ndarray
    gram: np.ndarray
    weight: float
    length: int = 1000

    def __call__(self, items: np.ndarray, events: np.ndarray | None = None) -> np.ndarray:
        own = self.items[np.unique(items[-self.length:])].astype(np.float64)
        matrix = self.gram + (self.weight - 1) * own.T @ own
        return np.linalg.solve(matrix, self.weight * own.sum(0)).astype(np.float32)

    def arrays(self) -> Arrays:
        return {"gram": self.gram, "weight": np.array([self.weight])}


def read(arrays: Mapping[str, np.ndarray]) -> Summed | Solved:
    """Of what `arrays` gave, and `items`."""
    if "gram" in arrays:
        return Solved(arrays["items"], arrays["gram"], float(arrays["weight"][0]))
    return Summed(arrays["inward"], float(arrays["power"][0]))
