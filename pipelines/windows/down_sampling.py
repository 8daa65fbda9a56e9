"""Keeps a share of the rows by the hash of their id: the same rows on any cluster, in any order."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from contracts.artifacts import LABEL, ROW

RESOLUTION = 2**32


def kept(rate: float, salt: str) -> Column:
    """True for a share `rate` of the rows; different salts choose independently."""
    if rate >= 1.0:
        return F.lit(True)
    draw = F.pmod(F.xxhash64(F.lit(salt), F.col(ROW)), F.lit(RESOLUTION))
    return draw < F.lit(round(rate * RESOLUTION))


def positives_and_some_negatives(rate: float) -> Column:
    """All positives and a share `rate` of the negatives; contracts/features/down_sampling.py undoes the effect on p."""
    return (F.col(LABEL) > 0) | kept(rate, "negatives")
