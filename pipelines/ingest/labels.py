"""Labels of impressions, and when each label became known.

    expression   1 or 0 as the expression says, known with the row
    clicks       1 when a click on the same `on` columns has t <= its event time <= t + window, known with the earliest
                 known of those clicks; else 0, known at t + window. Never known before the impression itself.

The time of the click that was known first is kept as `_click_time`. A click that becomes known after the label window
still makes a positive, with its late `_label_time`.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import CLICK_TIME, DAY, KNOWN, LABEL, LABEL_TIME, ROW, TIME
from contracts.config.log import Clicks
from contracts.errors import SchemaError
from contracts.features.event_clock import clicks_it
from pipelines.engine.expressions import with_expression
from pipelines.engine.step import step
from pipelines.ingest.quarantine import Rule
from pipelines.ingest.roles import NEVER, instant, key_text, time_rules

CLICK_KNOWN, _CLICKS = "_click_known", "_clicks"
NOTHING_SHOWN = "nothing_shown"  # in place of a day
_LABELS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double")


def add_expression(frame: DataFrame, expression: str) -> DataFrame:
    """Adds `_label` from the expression.

    Raises ConfigError when it is no SQL, SchemaError on an unknown column or a result that is no number.
    """
    labelled, found = with_expression(frame, LABEL, expression, "label.expression")
    if found not in _LABELS and not found.startswith("decimal"):
        raise SchemaError(f"label.expression {expression!r} is {found}, expected a boolean or a number that is 0 or 1")
    return labelled.withColumn(LABEL, F.col(LABEL).cast("float"))


def expression_rules() -> list[Rule]:
    """When a row's label is malformed."""
    return [("the label is null", F.isnull(LABEL)), ("the label is neither 0 nor 1", ~F.col(LABEL).isin(0.0, 1.0))]


def joined(on: Sequence[str]) -> list[str]:
    """Names of the join keys as text."""
    return [f"_on_{name}" for name in on]


def add_join_keys(frame: DataFrame, on: Sequence[str], where: str) -> DataFrame:
    """The `on` columns as text, so that both sides agree whatever their types."""
    columns = {key: key_text(frame, name, where) for key, name in zip(joined(on), on, strict=True)}
    return frame.withColumns(columns)


def add_click_roles(clicks: DataFrame, config: Clicks) -> DataFrame:
    """Adds the join keys, `_click_time` and `_click_known`, which is the time itself where none is configured."""
    keyed = add_join_keys(clicks, config.on, "label.clicks.on")
    time = instant(clicks, config.event_time, "label.clicks.event_time")
    known = instant(clicks, config.known_time, "label.clicks.known_time") if config.known_time else time
    return keyed.withColumns({CLICK_TIME: time, CLICK_KNOWN: known})


def click_rules(config: Clicks) -> list[Rule]:
    """When a click is malformed, in the order in which its reason is named."""
    found: list[Rule] = [
        (f"{name} is null", F.isnull(key)) for key, name in zip(joined(config.on), config.on, strict=True)
    ]
    found += time_rules(config.event_time, CLICK_TIME)
    if config.known_time:
        found += time_rules(config.known_time, CLICK_KNOWN, NEVER)
        found.append((f"{config.known_time} is before {config.event_time}", F.col(CLICK_KNOWN) < F.col(CLICK_TIME)))
    return found


def distinct_clicks(clicks: DataFrame, on: Sequence[str]) -> DataFrame:
    """One row per `on` columns and click time: the one known first."""
    return clicks.groupBy(*joined(on), CLICK_TIME).agg(F.min(CLICK_KNOWN).alias(CLICK_KNOWN))


@step(
    needs={ROW: "bigint", TIME: "timestamp", KNOWN: "timestamp"},
    gives={ROW: "bigint", LABEL: "float", LABEL_TIME: "timestamp"},
)
def add_clicks(
    events: DataFrame, clicks: DataFrame, on: Sequence[str], window: int, strays: bool = False
) -> DataFrame:
    """Left join of events (unique by `_row`) and distinct clicks, both with join keys; `window` in seconds.

    With `strays` clicks on nothing that was shown are rows, too, of the day NOTHING_SHOWN; `_row` says how many.
    """
    keys = joined(on)
    closes = F.col(TIME) + seconds(window)
    in_order = F.array_sort(F.collect_list(F.struct(CLICK_KNOWN, CLICK_TIME)))
    by_key = clicks.groupBy(*keys).agg(in_order.alias(_CLICKS))
    inside = F.filter(_CLICKS, lambda click: clicks_it(click[CLICK_TIME], F.col(TIME), closes))
    first = F.get(inside, 0)
    met = _with_strays(by_key, events, keys) if strays else by_key.join(events, keys, "right")
    met = met.withColumn(_CLICKS, first)
    known = F.col(_CLICKS)[CLICK_KNOWN]
    decided = F.greatest(F.coalesce(known, closes), F.col(KNOWN))
    labels = {LABEL: known.isNotNull().cast("float"), LABEL_TIME: decided, CLICK_TIME: F.col(_CLICKS)[CLICK_TIME]}
    return met.withColumns(labels).drop(_CLICKS)


def _with_strays(by_key: DataFrame, events: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The clicks, which are less than the events, are the side that is kept in memory: no side is sorted."""
    met = by_key.hint("shuffle_hash").join(events, list(keys), "full")
    count = F.size(_CLICKS).cast("bigint")
    return met.withColumns({ROW: F.coalesce(ROW, count), DAY: F.coalesce(DAY, F.lit(NOTHING_SHOWN))})


def take_strays(staging: Path) -> int:
    """How many clicks on nothing that was shown are among the staged events, which are without them then."""
    place = staging / f"{DAY}={NOTHING_SHOWN}"
    counts = [pc.sum(pq.read_table(file, columns=[ROW], partitioning=None).column(ROW)).as_py()
              for file in place.glob("*.parquet")]
    shutil.rmtree(place, ignore_errors=True)
    return sum(count or 0 for count in counts)


def seconds(count: int) -> Column:
    """A Spark interval."""
    return F.make_dt_interval(secs=F.lit(count))
