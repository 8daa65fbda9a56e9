"""Pairs of columns whose cross cannot say more than one of them does.

* two slots of one field: the granularities of one number, the windows of one counter;
* a column that determines the other (H(i | j) next to 0: a brand and its tier): the cross is j again;
* a column with one real value.
"""

from __future__ import annotations

import itertools

import numpy as np

from contracts.config.config import Config
from contracts.features.feature_spec import FIRST_ID
from models.cross_search.columns import CrossColumns

DETERMINED = 0.02  # share of a column's entropy that is left when the other is known


def allowed_pairs(columns: CrossColumns, config: Config) -> np.ndarray:
    """[slots, slots] bool, symmetric, the diagonal False."""
    source = sources(config)
    count = len(columns.slots)
    entropies = [entropy(*columns.codes([one])) for one in range(count)]
    allowed = np.zeros((count, count), dtype=bool)
    for one, other in itertools.combinations(range(count), 2):
        a, b = columns.slots[one], columns.slots[other]
        if source[a.field] == source[b.field] or min(a.size, b.size) <= FIRST_ID + 1:
            continue
        joint = entropy(*columns.codes([one, other]))
        free = (joint - entropies[other] > DETERMINED * entropies[one]
                and joint - entropies[one] > DETERMINED * entropies[other])
        allowed[one, other] = allowed[other, one] = free
    return allowed


def sources(config: Config) -> dict[str, str]:
    """Feature name -> the configured field it comes from: a counter expands into several."""
    plain = {one.name: one.name for one in config.fields}
    return plain | {name: one.name for one in config.fields for name, _, _ in one.counters()}


def entropy(codes: np.ndarray, size: int) -> float:
    """Of the empirical distribution of the codes, in nats."""
    counts = np.bincount(codes, minlength=size)
    shares = counts[counts > 0] / len(codes)
    return float(-(shares * np.log(shares)).sum())
