"""Many columns as one, by an operator that does not care for brackets.

An expression may be nested some fifty deep before it is a message too deep for the engine to parse, so that columns are
joined by pairs, then these by pairs: 300 of them are nine deep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column


def by_pairs(join: Callable[[Column, Column], Column], columns: Sequence[Column]) -> Column:
    """`columns`: at least one."""
    joined = [*columns]
    while len(joined) > 1:
        joined = [reduce(join, joined[place : place + 2]) for place in range(0, len(joined), 2)]
    return joined[0]
