"""What a log must be before its events are published: readable, accounted for to the row, and able to teach."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import DAY, LABEL, USER
from contracts.config.config import Config
from contracts.config.log import Log
from contracts.errors import DataError, EmptyLogError, OneClassError, SchemaError
from contracts.summaries.features import DayEvents
from pipelines.ingest import roles
from pipelines.ingest.quarantine import Counts


def check_readable(log: Log, counts: Counts, path: str, day: str | None) -> None:
    """Raises EmptyLogError without rows, SchemaError where no row's time can be read."""
    if counts.rows == 0:
        raise EmptyLogError(f"log: no rows{f' of {day}' if day else ''} at {path}; check the path and the day")
    for name in (log.event_time, log.known_time):
        if name and counts.by_reason.get(roles.unparsable(name)) == counts.rows:
            raise SchemaError(
                f"log: column {name!r} is text and no row holds a timestamp; derive one with try_to_timestamp"
            )


def check_accounted(rows_in: int, events: int, duplicates: int, quarantined: int, quarantine: Path) -> None:
    """Raises DataError when rows_in is not events + duplicates + quarantined, EmptyLogError without an event."""
    if events + duplicates + quarantined != rows_in:
        raise DataError(
            f"log: {rows_in} rows came in, but {events} events, {duplicates} duplicates and {quarantined} quarantined "
            "rows came out; run the job again on a log that is at rest"
        )
    if events == 0:
        raise EmptyLogError(f"log: all {rows_in} rows are malformed; see {quarantine}")


def check_classes(config: Config, events: DataFrame, rows: int, positives: int) -> None:
    """Raises OneClassError when all labels are equal, or all events are of one user."""
    if positives in (0, rows):
        raise OneClassError(
            f"log: all {rows} events have label {int(positives > 0)}; check the label's expression, clicks and window"
        )
    if config.log.user_id is not None:
        least, most = events.select(F.min(USER), F.max(USER)).collect()[0]
        if least == most:
            raise OneClassError(
                f"log: all {rows} events are of the single user {least!r}; check log.user_id or leave it out"
            )


def events_of_days(events: DataFrame) -> dict[str, DayEvents]:
    """In the order of the days."""
    figures = F.count(F.lit(1)).alias("events"), F.sum(LABEL).cast("long").alias("positives")
    rows = sorted(events.groupBy(DAY).agg(*figures).collect(), key=lambda row: row[DAY])
    return {row[DAY]: DayEvents(events=row["events"], positives=row["positives"]) for row in rows}
