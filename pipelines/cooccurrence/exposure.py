"""What an impression counts for: the click rate of the slot it was shown in over that of the first slot.

    exposure = rate(position) / rate(1),   rate(k) = (clicks at k + s q) / (rows at k + s), q = rate of all, s = 100

Clicks over summed exposure is the rate at position 1 under a position-based model whose examination is the plain
rate of a slot (clicks over expected clicks: Zhang & Jones, WWW 2007). It is 1 for a log without positions.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import LABEL, POSITION

EXPOSURE = "_exposure"
SMOOTHING = 100.0


def with_exposure(rows: DataFrame) -> DataFrame:
    """Adds `_exposure`, estimated on these rows."""
    if POSITION not in rows.columns:
        return rows.withColumn(EXPOSURE, F.lit(1.0))
    found = exposures(rows)
    if not found:
        return rows.withColumn(EXPOSURE, F.lit(1.0))
    table = F.create_map(*(F.lit(part) for pair in found.items() for part in pair))
    return rows.withColumn(EXPOSURE, F.coalesce(F.try_element_at(table, F.col(POSITION)), F.lit(1.0)))


def exposures(rows: DataFrame) -> dict[int, float]:
    """By position. 1 everywhere when nothing was clicked, or nothing was shown in the first slot."""
    counted = rows.groupBy(POSITION).agg(F.count("*").alias("rows"), F.sum(LABEL).alias("clicks")).collect()
    shown, clicks = sum(row["rows"] for row in counted), sum(row["clicks"] for row in counted)
    overall = clicks / max(shown, 1)
    rates = {row[POSITION]: (row["clicks"] + SMOOTHING * overall) / (row["rows"] + SMOOTHING) for row in counted}
    first = rates.get(1, 0.0)
    return {position: float(rate / first) if first else 1.0 for position, rate in rates.items()}
