"""When workers merged the latest items into their second index, and what requests near that took.

A merge is seen by `CatalogStatus` of a few connections: it lasts from the last look before enough was unmerged, or
before the count of merges rose, until the look that finds the count risen. Workers read the same changes and merge at
about the same time; one that no connection leads to is taken to do as the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from serving.changing_index.changing_index import MERGE_AT

NEAR_SECONDS = 0.5
FEWEST = 100  # requests near merges of which a p99 says anything


class Look(NamedTuple):
    """What one worker said at a moment of the monotonic clock."""

    moment: float
    merges: int
    unmerged: int


class Stretch(NamedTuple):
    """Of the monotonic clock, in seconds."""

    begin: float
    end: float


def merge_stretches(looks: Sequence[Look]) -> list[Stretch]:
    """Of one worker's looks, in their order."""
    found, begun = list[Stretch](), None
    for before, now in itertools.pairwise(looks):
        if begun is None and (now.unmerged >= MERGE_AT or now.merges > before.merges):
            begun = before.moment
        if now.merges > before.merges and begun is not None:
            found.append(Stretch(begun, now.moment))
            begun = None
    return found


def p99_ratio(calls: np.ndarray, stretches: Sequence[Stretch]) -> float | None:
    """p99 of the calls (float64 [N, 2]: when each was due, and its milliseconds) that were due within NEAR_SECONDS of a
    stretch, over the p99 of the others; None with fewer than FEWEST of either."""
    near = np.zeros(len(calls), dtype=bool)
    for begin, end in stretches:
        near |= (calls[:, 0] >= begin - NEAR_SECONDS) & (calls[:, 0] <= end + NEAR_SECONDS)
    if min(near.sum(), (~near).sum()) < FEWEST:
        return None
    return float(np.quantile(calls[near, 1], 0.99) / np.quantile(calls[~near, 1], 0.99))
