"""Configured columns of the log -> typed reserved role columns, and the rules that say when a row is malformed."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import BID, DAY, ITEM, KNOWN, POSITION, REQUEST, TIME, USER
from contracts.config.log import Log
from contracts.errors import ConfigError, SchemaError
from pipelines.engine.step import column_type
from pipelines.ingest.quarantine import NO_DAY, Rule

OPTIONAL = (REQUEST, POSITION, BID)
_TIMES = ("timestamp", "timestamp_ntz", "date")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_INTEGERS, "float", "double")
_KEYS = ("string", "boolean", *_INTEGERS)


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
    day = F.date_format(columns[TIME], "yyyy-MM-dd") if log.event_time else F.lit(NO_DAY)
    return frame.withColumns({**columns, DAY: day})


def rules(frame: DataFrame, log: Log) -> list[Rule]:
    """In the order in which they name a row's reason."""
    found: list[Rule] = []
    for name in log.key:
        column_type(frame, name, "log.key")
        found.append((f"{name} (key) is null", F.isnull(f"`{name}`")))
    for role, reserved in ((log.user_id, USER), (log.item_id, ITEM), (log.request_id, REQUEST)):
        if role:
            found += key_rules(role, reserved)
    for time, reserved in ((log.event_time, TIME), (log.known_time, KNOWN)):
        if time:
            found += time_rules(time, reserved)
    if log.known_time:
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


def time_rules(column: str, reserved: str) -> list[Rule]:
    """A time is there and can be read."""
    return [(f"{column} is null", F.isnull(f"`{column}`")), (unparsable(column), F.isnull(reserved))]


def unparsable(column: str) -> str:
    """The reason of a time that cannot be read."""
    return f"{column} is no timestamp"
