"""The click rate that smooths every rate counter: one constant, from the statistics window alone.

    prior = clicks / rows    over impressions shown in [start, end) of the window whose label had closed by its end;
                             a click counts when it was known by then, too

It is written beside the features (`_prior.json`; Spark passes over names with an underscore), and a later run of single
days reads it from there, so that a day comes out the same whenever it is made.
"""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import Artifacts
from contracts.atomic_write import write_json
from contracts.config.config import Config
from contracts.errors import WindowError
from contracts.windows import Span, read_timed
from pipelines.features.ingested_tables import read_tables
from pipelines.windows.publish_clock import AT, CLICK, CLOSE, to_micros

CURE = "lengthen windows.statistics, or do without rates"


def statistics_window(out: Artifacts, what: str) -> Span:
    """Raises WindowError where the configuration has no statistics window, which `what` need."""
    found = read_timed(out.windows).get("statistics")
    if found is None:
        raise WindowError(f"{what} need a statistics window, and {out.windows} has none; {CURE}")
    return found


def fit_prior(impressions: DataFrame, window: Span) -> float:
    """Raises WindowError when no label closed inside the window."""
    start, end = (to_micros(moment) for moment in window)
    closed = impressions.filter((F.col(AT) >= start) & (F.col(AT) < end) & (F.col(CLOSE) <= end))
    found = closed.agg(F.count("*").alias("rows"), F.count_if(F.col(CLICK) <= end).alias("clicks")).first()
    if found is None or found["rows"] == 0:
        raise WindowError(f"no label closed inside the statistics window {window[0]} to {window[1]}; {CURE}")
    return float(found["clicks"] / found["rows"])


def prior_of_run(spark: SparkSession, config: Config, out: Artifacts, refit: bool) -> float:
    """The stored prior, or a fresh one that is stored; 0 where no counter asks for a rate."""
    path = out.prior
    if not any(field.kind == "counter" and "rate" in field.statistics for field in config.fields):
        return 0.0
    if not refit and path.exists():
        return float(json.loads(path.read_text(encoding="utf-8"))["prior_rate"])
    window, tables = statistics_window(out, "rate counters"), read_tables(spark, config, out)
    prior = fit_prior(tables.impressions([], config.label_window), window)
    write_json(path, {"prior_rate": prior}, indent=None)
    return prior
