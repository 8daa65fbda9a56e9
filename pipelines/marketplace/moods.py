"""What users are after within an hour: a category that gives way to another.

At minute m the logit of user u and item i has the addend

    strength * (cos(a) [category of i = first of u] + sin(a) [category of i = second of u]),   a = (pi / 2) m / 60

so that the hour begins with the first category alone and ends with the second alone. Nothing but the user's clicks says
which they are: both are drawn by the number of items in a category, and hang on no field of the user.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

HOUR = 60.0  # minutes


@dataclass(frozen=True)
class Moods:
    """`first` and `second` are codes of categories [users]; `categories` those of the items [I]."""

    first: np.ndarray
    second: np.ndarray
    categories: np.ndarray
    strength: float

    @classmethod
    def drawn(cls, users: int, categories: np.ndarray, strength: float, rng: np.random.Generator) -> Self:
        """Two of each user, independently."""
        first, second = (categories[rng.integers(0, len(categories), users)] for _ in range(2))
        return cls(first, second, categories, strength)

    def addend(self, user: int, minute: float) -> np.ndarray:
        """To the logit of every item [I]."""
        angle = math.pi / 2 * minute / HOUR
        first, second = (self.categories == wanted[user] for wanted in (self.first, self.second))
        return self.strength * (math.cos(angle) * first + math.sin(angle) * second)
