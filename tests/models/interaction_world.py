"""Logs of positives with a known answer: users who walk round a ring of items, and users of two tastes."""

from __future__ import annotations

import numpy as np

from contracts.features.feature_spec import FIRST_ID
from models.interactions.interactions import Interactions, from_lists
from models.interactions.splits import Split, leave_one_out

ITEMS = 24


def ring(users: int = 120, seed: int = 0) -> Interactions:
    """Item i is followed by i + 1, in one of ten steps by i + 2."""
    random = np.random.default_rng(seed)
    lists = []
    for _ in range(users):
        steps = np.where(random.random(random.integers(4, 11)) < 0.1, 2, 1)
        lists.append(list((random.integers(ITEMS) + np.cumsum(steps)) % ITEMS + FIRST_ID))
    return from_lists(lists, ITEMS + FIRST_ID)


def ring_split(users: int = 120) -> Split:
    return leave_one_out(ring(users))


def two_worlds() -> Split:
    """Users of one half take items 2 to 11, of the other 12 to 21, in any order."""
    random = np.random.default_rng(0)
    return leave_one_out(from_lists(
        [list(random.permutation(10)[:7] + (2 if user % 2 else 12)) for user in range(80)], 22))
