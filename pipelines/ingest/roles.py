"""Configured columns of the log -> typed reserved role columns, and the rules that say when a row is malformed."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import BID, DAY, ITEM, KNOWN, POSITION, REQUEST, TIME, USER
from contracts.config.log import Log
from contracts.errors import ConfigError, SchemaError
from pipelines.engine.step import column_type
from pipelines.ingest.quarantine import NO_DAY, Rule
from pipelines.windows.publish_clock import to_micros

OPTIONAL = (REQUEST, POSITION, BID)
_TIMES = ("timestamp", "timestamp_ntz", "date")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_INTEGERS, "float", "double")
_KEYS = ("string", "boolean", *_INTEGERS)
FIRST_YEAR, LAST_YEAR = 1000, 9998  # windows before the first and publishes after the last are dates, too
NEVER = 9999  # a row may be known in no year of an event


def key_text(frame: DataFrame, column: str, where: str) -> Column:
    """A key as a string. Raises SchemaError on a float or nested column: equality of floats is no identity."""
    found = column_type(frame, column, where)
    if found not in _KEYS and not found.startswith(("varchar", "char", "decimal")):
        raise SchemaError(f"{where}: column {column!r} is {found}, a key is text, an integer or a boolean; derive one")
    return F.col(f"`{column}`").cast("string")


def instant(frame: DataFrame, column: str, where: str) -> Column:
    """A UTC timestamp; text that cannot be read gives null. Raises SchemaError on other types."""
    found = column_type(frame, column, where)
    if found == "string":
        return F.col(f"`{column}`").try_cast("timestamp")
    if found not in _TIMES:
        raise SchemaError(
            f"{where}: column {column!r} is {found}, expected a timestamp; derive one: timestamp_seconds({column})"
        )
    return F.col(f"`{column}`").cast("timestamp")


def number(frame: DataFrame, column: str, where: str, *, whole: bool) -> Column:
    found = column_type(frame, column, where)
    if found not in (_INTEGERS if whole else _NUMBERS) and (whole or not found.startswith("decimal")):
        expected = "a whole number" if whole else "a number"
        raise SchemaError(
            f"{where}: column {column!r} is {found}, expected {expected}; cast it in log.derive or give log.schema_ddl"
        )
    return F.col(f"`{column}`")


def add_roles(frame: DataFrame, log: Log) -> DataFrame:
    """Adds `_user`, `_item`, `_request`, `_time`, `_known`, `_position`, `_bid` as configured, and `day`.

    `_known` is the event time where no known time is configured. Without an event time, `day` is "all" and there is
    neither `_time` nor `_known`.
    """
    if log.known_time and not log.event_time:
        raise ConfigError("log.known_time is set without log.event_time; set event_time too")
    columns: dict[str, Column] = {}
    for role, name, reserved in (
        ("user_id", log.user_id, USER),
        ("item_id", log.item_id, ITEM),
        ("request_id", log.request_id, REQUEST),
    ):
        if name:
            columns[reserved] = key_text(frame, name, f"log.{role}")
    if log.event_time:
        columns[TIME] = instant(frame, log.event_time, "log.event_time")
        columns[KNOWN] = instant(frame, log.known_time, "log.known_time") if log.known_time else columns[TIME]
    if log.position:
        columns[POSITION] = number(frame, log.position, "log.position", whole=True).try_cast("int")
    if log.bid:
        columns[BID] = number(frame, log.bid, "log.bid", whole=False).cast("double")
    return frame.withColumns({**columns, DAY: _day(columns[TIME]) if log.event_time else F.lit(NO_DAY)})


def _day(time: Column) -> Column:
    """Null of a time that no event has, which not every engine writes as text."""
    return F.when(_within(time, LAST_YEAR), F.date_format(time, "yyyy-MM-dd"))


def _within(time: Column, last_year: int) -> Column:
    """Whether the time is there and of the years from FIRST_YEAR on."""
    first, last = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC), datetime(last_year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    return F.coalesce(F.unix_micros(time).between(to_micros(first), to_micros(last)), F.lit(False))


def rules(frame: DataFrame, log: Log) -> list[Rule]:
    """In the order in which they name a row's reason."""
    found: list[Rule] = []
    for name in log.key:
        column_type(frame, name, "log.key")
        found.append((f"{name} (key) is null", F.isnull(f"`{name}`")))
    for role, reserved in ((log.user_id, USER), (log.item_id, ITEM), (log.request_id, REQUEST)):
        if role:
            found += key_rules(role, reserved)
    if log.event_time:
        found += time_rules(log.event_time, TIME)
    if log.known_time:
        found += time_rules(log.known_time, KNOWN, NEVER)
        found.append((f"{log.known_time} is before {log.event_time}", F.col(KNOWN) < F.col(TIME)))
    if log.position:
        usable = F.col(POSITION) >= 1
        found.append((f"{log.position} is null or below 1", ~F.coalesce(usable, F.lit(False))))
    if log.bid:
        usable = (F.col(BID) >= 0) & (F.col(BID) < float("inf"))
        found.append((f"{log.bid} is null, negative or infinite", ~F.coalesce(usable, F.lit(False))))
    return found


def key_rules(column: str, reserved: str) -> list[Rule]:
    """Vocabularies keep keys as zero-padded bytes, so a key may hold no NUL character."""
    return [
        (f"{column} is null", F.isnull(reserved)),
        (f"{column} holds a NUL character", F.col(reserved).contains("\0")),
    ]


def time_rules(column: str, reserved: str, last_year: int = LAST_YEAR) -> list[Rule]:
    """A time is there, can be read, and is one that can be computed with."""
    return [
        (f"{column} is null", F.isnull(f"`{column}`")),
        (unusable(column, last_year), ~_within(F.col(reserved), last_year)),
    ]


def unusable(column: str, last_year: int = LAST_YEAR) -> str:
    """The reason of a time that cannot be read or is of no such year: milliseconds that are taken for seconds."""
    return f"{column} is no timestamp of the years {FIRST_YEAR} to {last_year}"
