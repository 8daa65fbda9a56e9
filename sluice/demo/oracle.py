"""Model quality against the simulator's truth: AUC over the best AUC that anybody could reach.

share of oracle = (AUC - 0.5) / (oracle AUC - 0.5), both at position 1 on the same rows of the test window.
"""

from __future__ import annotations

import numpy as np
import pyarrow.dataset as ds

from contracts.artifacts import ITEM, LABEL, ROW, TIME, USER, Artifacts
from contracts.config.config import Config
from contracts.errors import ConfigError
from models.evaluation import metrics
from pipelines.marketplace.truth import CONTEXT, Truth


def truth_of_test(config: Config, out: Artifacts) -> Truth:
    """Of the first day of the test window, the only one that its embargo leaves. Raises ConfigError where the log is
    not simulated or the window has no first day."""
    test = config.windows.test
    if config.simulation is None or not isinstance(test, tuple):
        raise ConfigError(f"{config.name} has no [simulation], or no dates in windows.test: its truth is not known")
    return Truth.of_day(out.truth, (test[0] - config.simulation.start).days)


def window_rows(out: Artifacts, context: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Users, items, labels, times and context columns of the test window, one entry per encoded example."""
    examples = ds.dataset(out.examples("test"), partitioning="hive").to_table(columns=[ROW, LABEL])
    days = ds.dataset(out.examples("test"), partitioning="hive").to_table(columns=["day"])["day"].unique()
    features = ds.dataset(out.features, format="parquet", partitioning="hive", exclude_invalid_files=True)
    raw = features.to_table(columns=[ROW, USER, ITEM, TIME, *context], filter=ds.field("day").isin(days))
    rows = raw[ROW].to_numpy()
    order = np.argsort(rows)
    at = order[np.searchsorted(rows[order], examples[ROW].to_numpy())]
    columns = {name: raw[name].to_numpy(zero_copy_only=False)[at] for name in (USER, ITEM, TIME, *context)}
    return columns | {LABEL: examples[LABEL].to_numpy().astype(np.float64)}


def oracle_auc(truth: Truth, rows: dict[str, np.ndarray]) -> float:
    """AUC of the true probability at position 1, the best possible score."""
    context = {name: rows[name] for name in CONTEXT}
    return float(metrics.auc(rows[LABEL], truth.probability(rows[USER], rows[ITEM], context, position=1)))


def best_auc(truth: Truth, out: Artifacts) -> float:
    """That of the run's test window."""
    return oracle_auc(truth, window_rows(out, CONTEXT))


def share_of_oracle(auc: float, best: float) -> float:
    """`best` is the oracle's AUC."""
    return (auc - 0.5) / (best - 0.5)
