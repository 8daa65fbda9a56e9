"""A split that somebody published: what trains and what tests in two files, without times."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from contracts.errors import DataError
from models.interactions.interactions import from_columns, user_lines
from models.interactions.splits import Holdout, Split

VALIDATION = 0.1


class Pairs(NamedTuple):
    """Users [A] and items [A], named as one likes."""

    users: np.ndarray
    items: np.ndarray


def pairs_of_lines(path: Path) -> Pairs:
    """Of a file of one line a user, as LightGCN's splits are stored. Raises DataError."""
    lines = user_lines(path)
    return Pairs(np.repeat([user for user, _ in lines], [len(items) for _, items in lines]),
                 np.array([item for _, items in lines for item in items], np.int64))


def given_split(train: Pairs, test: Pairs, seed: int = 0) -> Split:
    """A tenth of the training pairs validates, drawn evenly, each user's first excepted; they are history at the test.

    Raises DataError where a part is empty.
    """
    if not len(train.users) or not len(test.users):
        raise DataError(f"a given split has {len(train.users):,} training actions and {len(test.users):,} of test; "
                        "both must have some")
    log = from_columns(np.concatenate([train.users, test.users]), np.concatenate([train.items, test.items]))
    known = np.unique(np.concatenate([train.users, test.users]))
    trained = np.bincount(np.searchsorted(known, train.users), minlength=len(known))
    place = np.arange(len(log.items)) - log.offsets[log.owners]  # a user's training pairs come first
    tested = place >= trained[log.owners]
    whole = log.where(~tested)
    held = np.random.default_rng(seed).random(len(whole.items)) < VALIDATION
    held[whole.offsets[:-1][whole.lengths > 0]] = False
    part = whole.where(~held)
    return Split(part, Holdout(part, whole.where(held)), Holdout(whole, log.where(tested)))
