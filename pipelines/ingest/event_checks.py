"""What a log must be before its events are published: readable, accounted for to the row, and able to teach."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import DAY, LABEL, USER
from contracts.config.config import Config
from contracts.config.log import Log
from contracts.errors import DataError, EmptyLogError, OneClassError, SchemaError
from pipelines.ingest import roles
from pipelines.ingest.quarantine import Counts


def check_readable(log: Log, counts: Counts, path: str, day: str | None) -> None:
    """Raises EmptyLogError without rows, SchemaError where no row's time can be read."""
    if counts.rows == 0:
        raise EmptyLogError(f"log: no rows{f' of {day}' if day else ''} at {path}; check the path and the day")
    for name, last_year in ((log.event_time, roles.LAST_YEAR), (log.known_time, roles.NEVER)):
        if name and counts.by_reason.get(roles.unusable(name, last_year)) == counts.rows:
            raise SchemaError(
                f"log: column {name!r} holds no timestamp of the years {roles.FIRST_YEAR} to {last_year} in any row; "
                f"derive one: of text try_to_timestamp, of milliseconds since 1970 timestamp_millis({name})"
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


class DayFigures(NamedTuple):
    """Of the events of one day; `users` are the first and the last one in order, None where the log has none."""

    events: int
    positives: int
    users: tuple[str, str] | None


def figures_of_days(events: DataFrame, config: Config) -> dict[str, DayFigures]:
    """In the order of the days, from one pass."""
    users = [F.min(USER).alias("first"), F.max(USER).alias("last")] if config.log.user_id is not None else []
    counts = F.count(F.lit(1)).alias("events"), F.sum(LABEL).cast("long").alias("positives")
    rows = sorted(events.groupBy(DAY).agg(*counts, *users).collect(), key=lambda row: str(row[DAY]))
    return {
        str(row[DAY]): DayFigures(row["events"], row["positives"], (row["first"], row["last"]) if users else None)
        for row in rows
    }


def check_classes(config: Config, days: Mapping[str, DayFigures]) -> None:
    """Raises OneClassError when all labels are equal, unless that is as it should be, or all events of one user."""
    rows, positives = sum(day.events for day in days.values()), sum(day.positives for day in days.values())
    if positives in (0, rows) and not config.label.positives_only:
        alone = "; where the log holds nothing but positives, set label.positives_only = true" if positives else ""
        raise OneClassError(
            f"log: all {rows} events have label {int(positives > 0)}; check the label's expression, clicks and "
            f"window{alone}"
        )
    users = {user for day in days.values() if day.users for user in day.users}
    if config.log.user_id is not None and len(users) == 1:
        raise OneClassError(
            f"log: all {rows} events are of the single user {users.pop()!r}; check log.user_id or leave it out"
        )
