"""Two bundles on one test window: the same rows, each encoded and scored by the bundle itself, as its server would.

Rows are the run's point-in-time features (OUT/features), so that a champion with other vocabularies, crosses or
networks than the run's is judged on the very same impressions.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contracts.artifacts import DRAWS, LABEL, POSITION, ROW, USER, Artifacts
from contracts.errors import DataError
from serving.bundle import parity
from serving.bundle.loaded_bundle import LoadedBundle
from serving.bundle.scoring_bundle import ScoringBundle
from serving.replay.funnel_timing import Work, side_by_side
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel

CHUNK_ROWS = 32_768
ORIGIN = Path("the test window")


@dataclass(frozen=True)
class TestWindow:
    """`table` holds raw features, one row per impression; `users` are row ids where the log has no users."""

    __test__ = False

    table: pa.Table
    labels: np.ndarray
    users: np.ndarray
    has_users: bool

    @property
    def log_draws(self) -> np.ndarray | float:
        """float64 [B]: ln of how often a row was drawn for a positive of a log of positives alone; else 0."""
        return np.log(self.table[DRAWS].to_numpy()) if DRAWS in self.table.column_names else 0.0

    @property
    def first_position(self) -> np.ndarray:
        """bool [B]: shown at position 1, where probabilities are promised; all rows without positions."""
        if POSITION not in self.table.column_names:
            return np.ones(self.table.num_rows, dtype=bool)
        return self.table[POSITION].to_numpy() == 1


def read_window(out: Artifacts) -> TestWindow:
    """The rows of OUT/examples/test with their raw features, by row id. Raises DataError when a row has none."""
    folder = out.examples("test")
    if not folder.exists():
        raise DataError(f"{folder} is missing; run `sluice features` with the same --out first")
    rows = ds.dataset(folder, format="parquet", partitioning="hive").to_table(columns=[ROW])[ROW].combine_chunks()
    features = ds.dataset(out.features, format="parquet", partitioning="hive", exclude_invalid_files=True)
    table = features.to_table(filter=pc.field(ROW).isin(rows)).sort_by(ROW).combine_chunks()
    if table.num_rows != len(rows):
        raise DataError(f"{out.features} holds {table.num_rows} of the {len(rows)} test rows; "
                        "run `sluice features` again")
    labels = table[LABEL].to_numpy().astype(np.float64)
    has_users = USER in table.column_names
    users = np.asarray(table[USER if has_users else ROW].to_pylist())
    return TestWindow(table, labels, users, has_users)


def logits(bundle: ScoringBundle, window: TestWindow) -> np.ndarray:
    """float32 [B], at position 1. Raises SchemaError when the rows lack a column that the bundle reads."""
    parts = []
    for start in range(0, window.table.num_rows, CHUNK_ROWS):
        chunk = window.table.slice(start, CHUNK_ROWS)
        parts.append(parity.score(bundle.ranker, parity.encode(chunk, bundle.encoder, ORIGIN)))
    return np.concatenate(parts)


def median_milliseconds(bundles: dict[str, LoadedBundle], users: Sequence[str], requests: int) -> dict[str, float]:
    """Of processor time, in the whole funnel with explanations, measured side by side on the same users: on a machine
    that trains as well, seconds on the wall are as many as others leave."""
    def ask(bundle: LoadedBundle) -> Work:
        funnel, limit = Funnel(bundle), bundle.settings.serve.default_limit
        return lambda n: funnel.rank(RankQuery(user=users[n % len(users)], limit=limit), Deadline(None))

    spent = side_by_side({name: ask(bundle) for name, bundle in bundles.items()}, requests, time.process_time_ns)
    return {name: statistics.median(times) / 1000 for name, times in spent.items()}
