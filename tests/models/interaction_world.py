"""Logs of positives with a known answer: users who walk round a ring of items, and users of two tastes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from contracts.features.feature_spec import FIRST_ID
from models.interactions.interactions import Interactions, from_lists
from models.interactions.splits import Split, leave_one_out
from models.interactions.told_events import SECOND, Told

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


def told_halves(users: int = 100, gaps: bool = False) -> Split:
    """The next item is of the first half or of the second, as what is told of the action before says: a column's value,
    or the time until the next one, a second or a day; which of the half nobody knows."""
    random = np.random.default_rng(0)
    lists, forth = [], []
    for _ in range(users):
        first = random.random(random.integers(6, 12)) < 0.5
        lists.append(list(random.integers(ITEMS // 2, size=len(first)) + np.where(first, 0, ITEMS // 2) + FIRST_ID))
        forth.append(np.append(first[1:], True))  # what follows the last action is nobody's
    log, kinds = from_lists(lists, ITEMS + FIRST_ID), np.concatenate(forth)
    steps = np.where(kinds, 1, 86_400) * SECOND
    told = Told(gaps, np.zeros((len(kinds), 0), np.int64) if gaps else kinds[:, None] + FIRST_ID, () if gaps else (4,))
    return leave_one_out(replace(log, times=1_700_000_000 * SECOND + np.append(0, np.cumsum(steps)[:-1]), told=told))


def two_worlds() -> Split:
    """Users of one half take items 2 to 11, of the other 12 to 21, in any order."""
    random = np.random.default_rng(0)
    return leave_one_out(from_lists(
        [list(random.permutation(10)[:7] + (2 if user % 2 else 12)) for user in range(80)], 22))
