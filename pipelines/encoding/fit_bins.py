"""Quantile edges and scale of numeric columns, from a bounded sample that is the same on any cluster.

The sample is chosen by the hash of the row id, sorted before it is summed, and quantiles are values of the sample, so
that the result depends on neither partitioning nor order.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.errors import DataError
from pipelines.engine.worker_files import write_files
from pipelines.windows.down_sampling import kept

SAMPLE_ROWS = 200_000
SAMPLED = "_sampled"
DIGITS = 6

CONSTANT = 1e-12  # relative spread below which differences are rounding, not information


class Bins(NamedTuple):
    """`edges[G]` are at most G - 1 strictly increasing inner edges; mean and std are of log1p(max(x, 0)) if log."""

    edges: dict[int, tuple[float, ...]]
    mean: float
    std: float
    default: float


def sample(
    train: DataFrame, of_rows: int, columns: Sequence[str], folder: Path, rows: int = SAMPLE_ROWS
) -> dict[str, np.ndarray]:
    """About `rows` values (all, if there are fewer) of each column, sorted, without missing and infinite ones; `train`
    has `of_rows` rows.

    They come through files in `folder`, which go again: an engine hands numbers over by the wire ten times slower.
    """
    if not columns:
        return {}
    rate, place = min(1.0, rows / max(1, of_rows)), folder / SAMPLED
    chosen = train.where(kept(rate, "bins")).select([F.col(c).cast("double").alias(c) for c in columns])
    write_files(chosen, place)
    tables = [pq.read_table(file, partitioning=None) for file in sorted(place.glob("*.parquet"))]
    shutil.rmtree(place, ignore_errors=True)  # without rows, an engine may leave no folder
    arrays = {c: np.concatenate([np.empty(0), *(table.column(c).to_numpy() for table in tables)]) for c in columns}
    return {column: np.sort(values[np.isfinite(values)]) for column, values in arrays.items()}


def fit(values: np.ndarray, granularities: Sequence[int], log: bool, name: str) -> Bins:
    """Fits sorted finite values. A constant column has no edges and std 1, an empty one mean and default 0 too.

    Raises DataError where the spread exceeds what float64 holds.
    """
    if len(values) == 0:
        return Bins(dict.fromkeys(granularities, ()), 0.0, 1.0, 0.0)
    scaled = np.log1p(np.maximum(values, 0.0)) if log else values
    with np.errstate(over="ignore", invalid="ignore"):
        constant = np.ptp(scaled) <= CONSTANT * np.max(np.abs(scaled))
        mean, std = _rounded(np.mean(scaled)), 0.0 if constant else _rounded(np.std(scaled))
    if not np.isfinite([mean, std]).all():
        raise DataError(f"field {name!r} lies in [{values[0]:g}, {values[-1]:g}], too wide to scale; set log = true")
    default = float(np.quantile(values, 0.5, method="inverted_cdf"))
    return Bins({g: _edges(values, g) for g in granularities}, mean, std or 1.0, default)


def _edges(values: np.ndarray, granularity: int) -> tuple[float, ...]:
    """Quantiles k / G; one that equals the smallest value would leave the bin below it empty and is left out."""
    shares = np.arange(1, granularity) / granularity
    distinct = np.unique(np.quantile(values, shares, method="inverted_cdf"))
    return tuple(float(edge) for edge in distinct[distinct > values[0]])


def _rounded(value: np.floating) -> float:
    return float(f"{float(value):.{DIGITS}g}")
