"""online/users and online/items: what the server looks up, exactly as features of an event at publish time P.

One row per key that a table or the log knows at P: the side's raw features, `_published_at`, and

    items   _bid (the latest), _shown and _clicks (closed impressions and their clicks of all time; of a log of
            positives alone all takes and the item's), columns of filters and ranges
    users   _recent_items (the last 50 clicked items, newest first), and what `retrieve.events` asks of each:
            _recent_times (of the clicks, in microseconds), _recent_value_NAME (text)

Attributes that only the log has are the latest value present in a row known at P. P is a point of the publish grid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import (
    BID,
    BID_AT,
    CLICKS,
    ITEM,
    PUBLISHED_AT,
    READ_UNTIL,
    RECENT_ITEMS,
    RECENT_TIMES,
    RECENT_VALUES,
    SHOWN,
    USER,
    Artifacts,
)
from contracts.atomic_write import put_in_place
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.config.section import Side
from contracts.errors import ConfigError, EmptyLogError, SchemaError
from contracts.features.event_clock import SECOND, Measure
from contracts.features.event_features import RECENT
from contracts.summaries.features import OnlineTables
from pipelines.engine.day_partitions import rows_in, stage_whole, staging_of
from pipelines.features.history_features import HistoryFeatures
from pipelines.features.ingested_tables import Impressions, read_tables
from pipelines.features.latest_attributes import latest_attributes
from pipelines.features.measures import MOMENT
from pipelines.features.prior_rate import prior_of_run
from pipelines.features.raw_features import STATIC, of_log
from pipelines.features.running_counters import count_at
from pipelines.features.sequences import HISTORY, clickers, last_clicked
from pipelines.features.source_columns import INEXACT, NESTED, Located, SourceColumns, typed
from pipelines.windows.publish_clock import (
    AT,
    CLICKED_AT,
    ENTER,
    LEARNED,
    PublishClock,
    from_micros,
    published,
    to_micros,
)

TOTALS = {SHOWN: Measure("closed", None), CLICKS: Measure("clicked", None)}


class StagedOnline(NamedTuple):
    """The tables of `folders`, which lie beside their places."""

    found: OnlineTables
    folders: tuple[Path, ...]

    def publish(self) -> OnlineTables:
        """In place of those of the run before."""
        for folder in self.folders:
            put_in_place(staging_of(folder), folder)
        return self.found


def stage_online(spark: SparkSession, config: Config, out: Artifacts, at: datetime | None = None) -> StagedOnline:
    """Writes the tables of the sides that the log has keys for beside their places. The run's prior is known.

    `at` defaults to the first publish after the last event; event-fresh, to a microsecond after the last row is known.
    Raises ConfigError when `at` is not on the publish grid, EmptyLogError when there are no events.
    """
    tables = read_tables(spark, config, out)
    columns, clock = tables.columns(config), published(config.features)
    prior = prior_of_run(spark, config, out, refit=False)
    events = rows_in(out.events)
    sides = [_SideTable(config, columns, prior, events, side) for side in ("user", "item")
             if _key(side) in columns.log.names]
    needed = of_log([located for side in sides for located in side.sources()])
    impressions = tables.impressions(needed, config.label_window)
    reached = _reached(impressions)
    moment = reached.next_publish(clock) if at is None else _on_grid(at, clock)
    read_until = min(moment, reached.learned or reached.entered)
    known = Impressions(tables, impressions.where(F.col(ENTER) <= moment))
    folders: dict[Side, Path] = {}
    for side in sides:
        table, folder = (tables.users, out.online_users) if side.side == "user" else (tables.items, out.online_items)
        stage_whole(side.rows(known, table, moment, clock, read_until), folder)
        folders[side.side] = folder
    rows: dict[Side, int] = {side: rows_in(staging_of(folder)) for side, folder in folders.items()}
    at_publish = from_micros(moment).isoformat()
    found = OnlineTables(published_at=at_publish, users=rows.get("user"), items=rows.get("item"))
    return StagedOnline(found, tuple(folders.values()))


@dataclass(frozen=True)
class _SideTable:
    """How the rows of one side are made."""

    config: Config
    columns: SourceColumns
    prior: float
    events: int
    side: Side

    @property
    def fields(self) -> list[FieldConfig]:
        return [f for f in self.config.fields if f.kind in STATIC and f.side == self.side]

    @property
    def history(self) -> HistoryFeatures:
        return HistoryFeatures(self.config, self.columns, self.prior, (self.side,), self.events)

    def filters(self) -> dict[str, Located]:
        """Columns of filters and ranges that are not features already."""
        named = self.config.retrieve.item_columns if self.side == "item" else {}
        names = sorted(named.keys() - {f.name for f in self.fields})
        return {name: self.columns.locate(named[name], "item", name) for name in names}

    def told(self) -> list[Located]:
        """Columns that go with the items of a history."""
        names = self.config.retrieve.event_columns if self.side == "user" else ()
        return [event_column(self.columns, name) for name in names]

    def attributes(self) -> list[Located]:
        """Columns that belong to a key of this side."""
        keys = [located for field in self.history.counters for located in self.columns.keys_of(field)]
        return [*(self.columns.of_field(field) for field in self.fields), *keys, *self.filters().values()]

    def sources(self) -> list[Located]:
        """What is read with every impression; attributes that a table has come once a key, from there."""
        return [*of_log(self.attributes()), *self.history.sources(), *self.told()]

    def rows(
        self, known: Impressions, table: DataFrame | None, moment: int, clock: PublishClock, read_until: int
    ) -> DataFrame:
        """`known` are the impressions that entered by `moment` (microseconds, on the grid)."""
        key = _key(self.side)
        also = [BID] if self.side == "item" and BID in self.columns.log.names else []
        totals = [count_at(measure, moment).alias(name) for name, measure in TOTALS.items()]
        said = [F.max(F.when(F.col(BID).isNotNull(), F.col(AT))).alias(BID_AT)] if also else []
        counts = [*self.history.counts_of(key, moment), *(totals if self.side == "item" else []), *said]
        keyed = latest_attributes(known.frame, table, key, self.attributes(), also, counts)
        keyed = keyed.withColumn(AT, F.lit(moment).cast("bigint"))
        wide = self.history.add_at(keyed, known, clock, moment, key)
        extra: list[str] = []
        if self.side == "item":
            wide, extra = _totals(wide, known.frame, self.config.label.positives_only), list(TOTALS)
        elif ITEM in self.columns.log.names:
            beside = self._beside()
            wide = _recent_items(wide, known.frame, moment, clock, self.history.most, beside)
            extra = [RECENT_ITEMS, *beside]
        static = [column.alias(name) for name, column in self._static().items()]
        told = {PUBLISHED_AT: moment, READ_UNTIL: read_until}
        moments = [F.timestamp_micros(F.lit(at)).alias(name) for name, at in told.items()]
        bid = [*also, BID_AT] if also else []
        return wide.select(key, *bid, *static, *self.history.names(clock), *extra, *moments)

    def _beside(self) -> dict[str, Column]:
        times = {RECENT_TIMES: F.col(CLICKED_AT)} if self.config.retrieve.event_times else {}
        return times | {f"{RECENT_VALUES}{one.column}": F.col(one.name).cast("string") for one in self.told()}

    def _static(self) -> dict[str, Column]:
        filters = {name: F.col(located.name) for name, located in self.filters().items()}
        return {f.name: typed(f, self.columns.of_field(f)) for f in self.fields} | filters


def _key(side: Side) -> str:
    return USER if side == "user" else ITEM


def event_column(columns: SourceColumns, name: str) -> Located:
    """A column of the log whose values go with the items of a history. Raises SchemaError."""
    located = columns.locate("retrieve.events", "context", name)
    if isinstance(located.type, (*INEXACT, *NESTED)):
        raise SchemaError(f"retrieve.events: column {name!r} is {located.type.simpleString()}, needed are text, whole "
                          "numbers or booleans; derive such a column")
    return located


def _recent_items(
    wide: DataFrame, known: DataFrame, moment: int, clock: PublishClock, most: int | None, beside: Mapping[str, Column]
) -> DataFrame:
    lists = last_clicked(known, clickers(known, moment), F.col(ITEM), RECENT, clock, most, beside)
    found = lists.drop(MOMENT).withColumnRenamed(HISTORY, RECENT_ITEMS)
    kinds = {RECENT_ITEMS: "string", **{name: "bigint" if name == RECENT_TIMES else "string" for name in beside}}
    return found.join(wide, USER, "right").withColumns({
        name: F.coalesce(name, F.array().cast(f"array<{kind}>")) for name, kind in kinds.items()})


def _totals(items: DataFrame, known: DataFrame, positives_only: bool) -> DataFrame:
    """Of a log of positives alone every item counts as shown at every take."""
    filled = items.withColumns({name: F.coalesce(F.col(name), F.lit(0).cast("bigint")) for name in TOTALS})
    return filled.withColumn(SHOWN, F.lit(known.count()).cast("bigint")) if positives_only else filled


class _Reached(NamedTuple):
    """Microseconds of the last event, of when the last one entered and of when the last click was learned, None without
    clicks."""

    at: int
    entered: int
    learned: int | None

    def next_publish(self, clock: PublishClock) -> int:
        last = self.entered if clock.period == 1 else self.at
        return last // clock.period * clock.period + clock.period


def _reached(impressions: DataFrame) -> _Reached:
    found = impressions.agg(F.max(AT), F.max(ENTER), F.max(LEARNED)).first()
    if found is None or found[0] is None:
        raise EmptyLogError("there are no events to publish tables of; ingest a log first")
    return _Reached(*found)


def _on_grid(at: datetime, clock: PublishClock) -> int:
    moment = to_micros(at)
    early = moment % clock.period
    if early:
        raise ConfigError(
            f"{at.isoformat()} is no publish time: features.publish_every is {clock.period // SECOND} s, counted from "
            f"1970 in UTC; take {from_micros(moment - early).isoformat()}"
        )
    return moment
