"""Which pairs of columns are worth crossing: not those whose cross cannot say more than one of them does.

* two slots of one field: the granularities of one number, the windows of one counter;
* a column that determines the other (H(i | j) next to 0: a brand and its tier): the cross is j again;
* a column with one real value.
"""

from __future__ import annotations

import itertools

import numpy as np

from contracts.config.config import Config
from contracts.errors import DataError
from contracts.features.feature_spec import FIRST_ID
from models.cross_search.columns import CrossColumns

DETERMINED = 0.02  # share of a column's entropy that is left when the other is known


def allowed_pairs(columns: CrossColumns, config: Config) -> np.ndarray:
    """bool [S, S] over the slots of the columns, symmetric, the diagonal False."""
    source = sources(config)
    count = len(columns.slots)
    entropies = [entropy(*columns.codes([place])) for place in range(count)]
    allowed = np.zeros((count, count), dtype=bool)
    for left, right in itertools.combinations(range(count), 2):
        first, second = columns.slots[left], columns.slots[right]
        if source[first.field] == source[second.field] or min(first.size, second.size) <= FIRST_ID + 1:
            continue
        joint = entropy(*columns.codes([left, right]))
        free = (joint - entropies[right] > DETERMINED * entropies[left]
                and joint - entropies[left] > DETERMINED * entropies[right])
        allowed[left, right] = allowed[right, left] = free
    return allowed


def require_configured(columns: CrossColumns, config: Config) -> None:
    """Raises DataError where a column is one of a field that was removed, renamed or binned otherwise since."""
    known = {f"{name}#{bins}" if bins else name
             for field in config.fields for name in field.features() for bins in field.bins() or (0,)}
    gone = [slot.name for slot in columns.slots if slot.name not in known]
    if gone:
        raise DataError(f"the examples have {gone[0]!r}, which the configuration has not any more; "
                        "run `sluice features` first")


def sources(config: Config) -> dict[str, str]:
    """Feature name -> the configured field it comes from: a counter expands into several."""
    plain = {field.name: field.name for field in config.fields}
    return plain | {name: field.name for field in config.fields for name, _, _ in field.counters()}


def entropy(codes: np.ndarray, size: int) -> float:
    """Of the empirical distribution of the codes, in nats."""
    counts = np.bincount(codes, minlength=size)
    shares = counts[counts > 0] / len(codes)
    return float(-(shares * np.log(shares)).sum())
