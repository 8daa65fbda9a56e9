"""What retrieval models are fitted to, what they are asked, and what the right answers were.

`leave_one_out` is the split of the public record: a user's last action tests, the one before validates. It leaks time:
a model has seen what others did later. `split_in_time` cuts the log at two moments instead, as a served model is cut.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from contracts.errors import DataError
from models.interactions.interactions import Interactions


class Holdout(NamedTuple):
    """`history`: what is known of each user when asked; `targets`: what each user did then, possibly nothing."""

    history: Interactions
    targets: Interactions

    @property
    def asked(self) -> np.ndarray:
        """The users with a target."""
        return np.flatnonzero(self.targets.lengths)

    def history_of(self, users: np.ndarray) -> Interactions:
        """What is known of some that are asked, at the time of the first target of each."""
        history, targets = self.history.rows(users), self.targets.rows(users)
        return history if targets.times is None else replace(history, asked=targets.times[targets.offsets[:-1]])


class Split(NamedTuple):
    """Models are fitted to `train`, chosen by `validation`, reported on `test`."""

    train: Interactions
    validation: Holdout
    test: Holdout


def leave_one_out(log: Interactions) -> Split:
    """Users with fewer than three actions are trained on and not asked. Raises DataError where no user has three."""
    from_end = np.repeat(log.offsets[1:], log.lengths) - np.arange(len(log.items))
    long = (log.lengths >= 3)[log.owners]
    if not long.any():
        raise DataError("no user has three actions: one to start from, one to validate, one to test; use a split in "
                        "time, or a longer log")
    train = log.where(~long | (from_end > 2))
    return Split(
        train, Holdout(train, log.where(long & (from_end == 2))),
        Holdout(log.where(~long | (from_end > 1)), log.where(long & (from_end == 1))))


def split_in_time(log: Interactions, validation: float = 0.1, test: float = 0.1) -> Split:
    """The last share `test` of all actions tests, the share before it validates; the moments follow from the shares.

    A target that its user took before is no target: the answer would be known. Raises DataError without times.
    """
    if log.times is None:
        raise DataError("this log has no times to cut at; use leave-one-out, or a log with a column of times")
    first, second = np.quantile(log.times, [1 - validation - test, 1 - test], method="higher")
    fresh = first_takes(log)
    return Split(
        log.where(log.times < first),
        Holdout(log.where(log.times < first), log.where((log.times >= first) & (log.times < second) & fresh)),
        Holdout(log.where(log.times < second), log.where((log.times >= second) & fresh)))


def first_takes(log: Interactions) -> np.ndarray:
    """bool [A]: the user had not taken the item before."""
    pair = log.owners * log.table + log.items
    first = np.zeros(len(pair), bool)
    first[np.unique(pair, return_index=True)[1]] = True
    return first
