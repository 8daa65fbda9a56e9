"""drawn/day=D: the examples of a log of positives alone, one row each with the columns of an event and DRAWS.

    the positive        as it was ingested
    rows drawn for it   its user, moment, request and context, another item, no click, a hash of their own

They enter as rows that features are made for; what is counted of the past are takes alone (ingest/events).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import DAY, DRAWS, ITEM, LABEL, ROW, USER, Artifacts
from contracts.config.config import Config
from contracts.errors import DataError, EmptyLogError
from contracts.summaries.features import DrawnRows
from pipelines.engine.day_partitions import days_in, drop_days, groups_of, in_turn, read_days, rows_in, write_days
from pipelines.engine.embedded import is_embedded
from pipelines.features.ingested_tables import read_tables
from pipelines.features.raw_features import STATIC
from pipelines.features.source_columns import SourceColumns
from pipelines.negatives.catalogue import Catalogue, tickets
from pipelines.negatives.draw import EXHAUSTED, NEWCOMER, PICK, REPEAT, RETRIEVED, WANTED, Drawing, picks
from pipelines.negatives.latest_values import latest_values
from pipelines.negatives.neighbours import beginnings, fit_neighbours
from pipelines.windows.publish_clock import with_times

CATALOGUE = "_catalogue"
FROM_CANDIDATES = 2
EMBEDDED_ROWS = 6_000_000  # of a pass, which reads the takes of all older days


def draw_rows(spark: SparkSession, config: Config, out: Artifacts, days: Sequence[str] | None = None) -> DrawnRows:
    """Writes the partitions of `days` (all when None); the embedded engine takes a long log some days at a time.

    Of a day's rows all older takes may be told, those of later days never: these are not read.

    Raises DataError where nothing can be drawn for any positive, or for none of a day that was asked for; EmptyLogError
    on a day without takes.
    """
    there = days_in(out.events)
    missing = sorted(set(days or []) - set(there))
    if missing or not there:
        raise EmptyLogError(f"there are no takes{' on ' if missing else ''}{', '.join(missing)}; ingest them first")
    negatives, folder = config.label.negatives, out.drawn / CATALOGUE
    takes = with_times(read_days(spark, out.events, _up_to(there, days or there)), 0)
    catalogue = Catalogue.of(tickets(takes, negatives.popularity).toArrow())
    catalogue.write(folder)
    wanted = list(days) if days is not None else there
    if negatives.candidates:
        fit_neighbours(takes, beginnings(wanted), catalogue, folder)
    drawing = Drawing(folder=folder, seed=config.seed, per_positive=negatives.per_positive, power=negatives.popularity,
                      repeat=config.label.repeat, candidates=negatives.candidates)
    sizes = {day: rows_in(out.events / f"{DAY}={day}") for day in wanted}
    most = EMBEDDED_ROWS // (1 + negatives.per_positive)
    passes = groups_of(sizes, most) if is_embedded(spark) else [wanted]
    counts: Counter[int] = Counter()
    written = [day for group in in_turn("draw", passes, sizes)
               for day in _write(spark, config, out, drawing, group, counts)]
    if days is None:
        drop_days(out.drawn, sorted(set(days_in(out.drawn)) - set(there)))
    found = DrawnRows(
        positives=counts[0], negatives=counts[1], newcomers=counts[NEWCOMER], repeats=counts[REPEAT],
        exhausted=counts[EXHAUSTED], items=len(catalogue.names), per_positive=negatives.per_positive,
        popularity=negatives.popularity, candidates=negatives.candidates, retrieved=counts[FROM_CANDIDATES],
        written=tuple(written),
    )
    _check(found, config, days)
    return found


def _write(
    spark: SparkSession, config: Config, out: Artifacts, drawing: Drawing, days: Sequence[str], counts: Counter[int]
) -> list[str]:
    """One pass; adds up what became of the takes by PICK, drawn rows as 1, and those of them FROM_CANDIDATES. Returns
    the days that changed."""
    events = read_days(spark, out.events, _up_to(days_in(out.events), days))
    takes = with_times(events, 0).withColumn(WANTED, F.col(DAY).isin(list(days)))
    found = picks(takes, drawing).persist()
    try:
        kinds = found.groupBy(F.least(PICK, F.lit(1)).alias(PICK), RETRIEVED).count().collect()
        for row in kinds:
            counts.update({row[PICK]: row["count"]} | ({FROM_CANDIDATES: row["count"]} if row[RETRIEVED] else {}))
        rows = _rows(found, takes, _item_columns(spark, config, out, days)).select(*events.columns, DRAWS)
        return write_days(rows, out.drawn, only=days)
    finally:
        found.unpersist()


def _up_to(known: Sequence[str], days: Sequence[str]) -> list[str]:
    return [day for day in known if day <= max(days)]


def _rows(found: DataFrame, takes: DataFrame, item_columns: Sequence[str]) -> DataFrame:
    """The positives with what was drawn for them: columns of `takes`, and DRAWS."""
    joined = found.where(F.col(PICK) >= 0).drop(RETRIEVED).join(takes.where(WANTED).drop(ITEM, *item_columns), ROW)
    own = F.when(F.col(PICK) == 0, F.col(ROW)).otherwise(F.xxhash64(ROW, PICK))
    rows = joined.withColumns({ROW: own, LABEL: (F.col(PICK) == 0).cast("float")})
    return rows.join(latest_values(rows, takes, item_columns), ROW, "left") if item_columns else rows


def _item_columns(spark: SparkSession, config: Config, out: Artifacts, days: Sequence[str]) -> list[str]:
    """Columns of the log that describe the item, its key aside."""
    columns: SourceColumns = read_tables(spark, config, out, days).columns(config)
    located = [columns.of_field(field) for field in config.fields if field.side == "item" and field.kind in STATIC]
    located += [key for field in config.fields if field.side == "item" and field.kind == "counter"
                for key in columns.keys_of(field)]
    located += [columns.locate(who, "item", name) for name, who in config.retrieve.item_columns.items()]
    return list(dict.fromkeys(c.name for c in located if c.origin == "log" and c.name not in (ITEM, USER)))


def _check(found: DrawnRows, config: Config, days: Sequence[str] | None) -> None:
    if found.positives:
        return
    what = f"the takes of {', '.join(days)}" if days else "the log"
    raise DataError(
        f"nothing can be drawn for {what}: {found.newcomers} takes are the first of their item, {found.repeats} repeat "
        f"an item that the user had taken before, and for {found.exhausted} the user had taken all there was; the log "
        f"has {found.items} item(s). Check log.item_id and log.event_time, bring a longer log"
        + ("" if config.label.repeat else ", or set label.repeat = true where users take the same item again")
    )
