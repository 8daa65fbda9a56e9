"""Recorded events -> the log that `sluice features` reads, as `log.path` and `label.clicks.path` name it, in Parquet
whatever their format (pipelines/reading/landed.py):

    FOLDER/impressions/FIRST-LAST.parquet      event_id, the columns of the log that any bundle of the folder has read,
                                               event and known time
    FOLDER/clicks/FIRST-LAST.parquet           event_id, the columns that join them, event and known time
    FOLDER/conversions/FIRST-LAST.parquet      event_id, user, item, event and known time

A range of events is written down before its files are made: a process that is killed meanwhile makes the same files
again. Every event is in exactly one file, every file is whole. One process of the host lands at a time. Where files of
a log that began before, or that an older copy of the events was put in place of, have the names already, theirs come
after all of these.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.atomic_write import durable
from contracts.features.event_clock import SECOND
from contracts.features.event_features import ColumnType, EventFeatures
from contracts.table_files import LANDED_CONVERSIONS, is_landed_name, landed_folder, landed_name
from serving.embedded_store.database import transaction
from serving.events.event import Kind, as_text
from serving.events.event_store import EventStore

ROWS = 100_000  # events of one file
LANDED, LANDING = "landed", "landing"  # the last event that is in a file, and that is about to be
LANDED_AT = "landed_at"  # microseconds since 1970: when some process of the host landed last
SHIFT = "landing_shift"  # of the numbers in the names of the files that are about to be
TYPES: dict[ColumnType, pa.DataType] = {
    "text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "flag": pa.bool_(),
    "list": pa.list_(pa.string())}
WRONG = (pa.ArrowException, TypeError, ValueError, OverflowError)  # of a value that is none of a type
INSTANT = pa.timestamp("us", "UTC")
BYTES = 64 << 20  # of their columns
log = logging.getLogger("sluice.serving")
RANGE = "SELECT id, kind, at, known, user, item, columns FROM events WHERE seq > ? AND seq <= ? ORDER BY seq"

UP_TO = (
    "SELECT max(seq) FROM (SELECT seq, sum(length(CAST(columns AS BLOB))) OVER (ORDER BY seq) AS held, "
    "row_number() OVER (ORDER BY seq) AS place FROM events WHERE seq > ? AND seq <= ?) WHERE held <= ? OR place = 1"
)


class Landed(NamedTuple):
    id: str
    kind: int
    at: int
    known: int
    user: str
    item: str
    columns: dict[str, Any]


def land(
    store: EventStore, features: EventFeatures, folder: Path, rows: int = ROWS, size: int = BYTES, *, now: int = 0,
    pause: float = 0.0,
) -> int:
    """Lands what is recorded and not landed; returns how many events. Nothing where another process is at it, or has
    been so in the `pause` seconds before `now`: each worker of a host would make files of its own of the same half
    minute."""
    done, before, features = 0, _request_ids_before(store, features), features.also(store.columns)
    with alone(folder) as mine:
        if not mine or 0 <= now - store.fact(LANDED_AT) < pause * SECOND:
            return 0
        while store.fact(LANDED) < store.newest:
            done += _land_some(store, features, before, folder, _next(store, features, folder, rows, size))
        if done:
            with transaction(store.connection):
                store.set_fact(LANDED_AT, now)
    return done


def _next(store: EventStore, features: EventFeatures, folder: Path, rows: int, size: int) -> tuple[int, int]:
    """The last event that is landed, and the last of those that are next: at most `rows` of `size` bytes, one event at
    least. It is written down before their files are made."""
    first, last = store.fact(LANDED), store.fact(LANDING)
    if last <= first:
        last = min(store.newest, first + rows)
        (found,) = store.connection.execute(UP_TO, (first, last, size)).fetchone()
        last = last if found is None else found
        with transaction(store.connection):
            store.set_fact(LANDING, last)
            store.set_fact(SHIFT, _shift(features, folder, first, last))
    return first, last


def _shift(features: EventFeatures, folder: Path, first: int, last: int) -> int:
    """By which no file that is there is written over."""
    folders = [folder / folder_of(kind, features) for kind in Kind]
    if not any((one / landed_name(first + 1, last)).exists() for one in folders):
        return 0
    taken = [int(path.stem.split("-")[1]) for one in folders for path in one.glob("*.parquet")
             if is_landed_name(path.name)]
    return max(taken) - first


def _land_some(
    store: EventStore, features: EventFeatures, before: Sequence[str], folder: Path, turn: tuple[int, int]
) -> int:
    first, last = (number + store.fact(SHIFT) for number in turn)
    rows_ = store.connection.execute(RANGE, turn)
    found = [Landed(*row)._replace(columns=json.loads(row[-1])) for row in rows_]
    for kind in Kind:
        of_kind = [event for event in found if event.kind == kind]
        if of_kind:
            path = folder / folder_of(kind, features) / landed_name(first + 1, last)
            with durable(path) as draft:
                pq.write_table(_table(of_kind, kind, features, before), draft)
    with transaction(store.connection):
        store.set_fact(LANDED, turn[1])
    return len(found)


def folder_of(kind: Kind, features: EventFeatures) -> str:
    """Within the landed log; of each kind another one."""
    if kind is Kind.CONVERSION:
        return LANDED_CONVERSIONS
    return landed_folder((features.log if kind is Kind.IMPRESSION else features.clicks).path)


def _request_ids_before(store: EventStore, features: EventFeatures) -> list[str]:
    """Names of the request's id in bundles before, which are no other part of the log now."""
    log = features.log
    now = {*features.readable, log.user_id, log.item_id, log.request_id, log.position, log.bid}
    return [name for name in store.request_ids if name not in now]


def _table(events: Sequence[Landed], kind: Kind, features: EventFeatures, before: Sequence[str]) -> pa.Table:
    at, known = features.times(kind is Kind.CLICK)
    columns = {"event_id": pa.array([event.id for event in events], pa.string())}
    for name, type_ in _types(kind, features).items():
        columns[name] = _column(name, [_value(event, name, features, before) for event in events], type_)
    columns[str(at)] = pa.array([event.at for event in events], pa.int64()).cast(INSTANT)
    columns[str(known)] = pa.array([event.known for event in events], pa.int64()).cast(INSTANT)
    return pa.table(columns)


def _value(event: Landed, name: str, features: EventFeatures, before: Sequence[str]) -> Any:
    """A bundle before may have had other names for user, item and the request's id."""
    value, roles = event.columns.get(name), {features.log.user_id: event.user, features.log.item_id: event.item}
    if value is None and name == features.log.request_id:
        value = next((event.columns[old] for old in before if event.columns.get(old) is not None), None)
    return (roles.get(name) or None) if value is None else value


def _column(name: str, values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """A bundle before may have recorded another type: what is none of this one is missing, and the log says so."""
    try:
        if not (pa.types.is_integer(type_) and any(isinstance(value, float) for value in values)):  # it would cut them
            return pa.array(values, type_)
    except WRONG:
        pass  # one by one
    found = pa.array([_fitting(value, type_) for value in values], type_)
    lost = found.null_count - values.count(None)
    if lost:
        log.warning("%d of %d events were recorded with another type of column %r than %s, and landed without it", lost,
                    len(values), name, type_)
    return found


def _fitting(value: Any, type_: pa.DataType) -> Any:
    if pa.types.is_string(type_) and isinstance(value, bool | int | float):
        return as_text(value)
    if pa.types.is_integer(type_) and isinstance(value, float):
        value = int(value) if value.is_integer() else None
    if isinstance(value, str):
        value = _spelt(value, type_)
    try:
        return pa.scalar(value, type_).as_py()
    except WRONG:
        return None


def _spelt(text: str, type_: pa.DataType) -> Any:
    """What the text writes out: a whole number, a finite one, true or false; else the text."""
    if pa.types.is_boolean(type_):
        return {"true": True, "false": False}.get(text.lower(), text)
    if pa.types.is_integer(type_) and re.fullmatch(r"[+-]?[0-9]+", text):
        return int(text)
    if pa.types.is_floating(type_) and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return float(text) if math.isfinite(float(text)) else text
    return text


def _types(kind: Kind, features: EventFeatures) -> dict[str, pa.DataType]:
    """Of the columns of every file of the kind, whatever is in it."""
    log = features.log
    roles: dict[str | None, pa.DataType] = dict.fromkeys((log.user_id, log.item_id, log.request_id), pa.string())
    if kind is Kind.IMPRESSION:
        roles |= {log.position: pa.int32(), log.bid: pa.float64()}
    names = {Kind.IMPRESSION: features.readable, Kind.CLICK: list(features.clicks.on), Kind.CONVERSION: []}[kind]
    told: dict[str | None, pa.DataType] = {name: TYPES[features.column_type(name) or "text"] for name in names}
    return {name: type_ for name, type_ in {**told, **roles}.items() if name}


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """Whether no other process of the host lands there, nor begins to meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".landing").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
