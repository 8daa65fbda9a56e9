"""Events of a Redis stream -> the store of the host, by the rules of `RecordEvents`.

    XADD sluice:events * event BYTES      an Event of sluice.v1, serialised; or `json TEXT`, the same as JSON

At least once: read ▶ on the disk ▶ acknowledged. What was read by one that died before it acknowledged is read first by
the next; the store knows events by their ids, so that none counts twice. Every host reads all events: it has a group of
its own, named in its store, and one consumer of it. A new store begins at the stream's beginning.

Entries that are refused go to sluice:events:refused, with the reason; where that Redis takes nothing more (its
`maxmemory`), they stay in the stream alone, and the log names them.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import redis
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from redis.exceptions import OutOfMemoryError, RedisError, ResponseError

from contracts.config.stages import Serve
from contracts.errors import DataError, RequestError, SluiceError
from contracts.features.event_features import EventFeatures
from contracts.nearest import Hints
from contracts.shown import short
from serving.embedded_store.database import opened
from serving.events.event import Event
from serving.events.event_checks import check_event
from serving.events.event_recorder import Refused, Told, unheeded
from serving.events.event_store import FILE, SCHEMA, EventStore
from serving.proto import sluice_pb2 as pb
from serving.redis_store.address import waiting_client

STREAM, REFUSED = "sluice:events", "sluice:events:refused"
MOST_REFUSED, MOST_KEPT = 10_000, 16 << 10  # entries that are kept, and bytes of a field of theirs
CONSUMER, GROUP = "sluice", "stream_group"
BEGINNING, NEWER = "0", ">"
ENTRIES = 1_000  # at once
REASON = 400  # characters of why an entry is refused: what is wrong, and what to send
MICROS = 1_000  # of a millisecond, of which an entry's id counts
MOST_BEHIND = 600_000_000  # microseconds that the host's clock may be behind the store's: no event is lost by that
log = logging.getLogger("sluice.serving")


class Entry(NamedTuple):
    """Of the stream; `id` is MILLISECONDS-NUMBER."""

    id: bytes
    fields: Mapping[bytes, bytes]


def group_of(database: sqlite3.Connection) -> str:
    """The host's own group; a store without one is given it."""
    database.execute("INSERT INTO facts VALUES (?, ?) ON CONFLICT DO NOTHING", [GROUP, secrets.randbits(63)])
    (found,) = database.execute("SELECT value FROM facts WHERE name = ?", [GROUP]).fetchone()
    return f"host-{found:016x}"


def replay(folder: Path, address: str, after: str) -> str:
    """Lets the host of this folder read again what was added after the entry `after` (0: all); returns its group. A
    server that reads meanwhile goes on from there. Raises DataError where there is no such folder, store or entry."""
    if not (folder / FILE).exists():
        raise DataError(f"{folder} holds no events; give the folder of `sluice serve --fresh`")
    with closing(opened(folder / FILE, SCHEMA)) as database, closing(waiting_client(address)) as client:
        group = group_of(database)
        try:
            _begin(client, group)
            client.xgroup_setid(STREAM, group, after)
        except RedisError as error:
            raise DataError(f"the stream cannot be read again from {after!r} ({short(str(error))})") from None
    return group


class EventStream:
    """For one thread at a time, and one process of the host."""

    def __init__(
        self, client: redis.Redis, store: EventStore, features: EventFeatures, serve: Serve, told: Told,
        refuses: Refused = unheeded,
    ) -> None:
        self._client, self._store, self._features, self._serve, self._told = client, store, features, serve, told
        self._group, self._begun, self._unacknowledged = group_of(store.connection), False, True
        self._refused, self._refuses = {True: 0, False: 0}, refuses  # by whether they were kept

    def turn(self, wait: float) -> int:
        """Records what is there, or comes within `wait` seconds; returns how many entries were read. Raises RedisError,
        sqlite3.Error: then the same entries are read again by the next turn."""
        begun, self._unacknowledged = self._unacknowledged, True
        if not self._begun:
            _begin(self._client, self._group)
            self._begun = True
        entries = self._read(BEGINNING if begun else NEWER, wait)
        self._record(entries)
        self._unacknowledged = begun and bool(entries)
        return len(entries)

    def _read(self, after: str, wait: float) -> list[Entry]:
        try:
            found = self._client.xreadgroup(
                self._group, CONSUMER, {STREAM: after}, count=min(ENTRIES, self._serve.max_events),
                block=max(round(wait * 1000), 1))
        except ResponseError as error:
            self._begun = "NOGROUP" not in str(error)  # the stream was removed, or its Redis started anew
            raise
        return [Entry(id_, fields or {}) for _, entries in found or () for id_, fields in entries]  # type: ignore[union-attr, misc]

    def _record(self, entries: Sequence[Entry]) -> None:
        events, refused, now, hints = list[Event](), list[tuple[Entry, str]](), time.time_ns() // 1000, Hints()
        features = self._features.also(self._store.columns) if entries else self._features
        for entry in entries:
            try:
                events.append(self._event(entry, features, now, hints))
            except RequestError as error:
                refused.append((entry, short(f"{error.field} {error.problem}", REASON)))
            except (SluiceError, DecodeError, json_format.ParseError, ValueError) as error:
                refused.append((entry, short(str(error), REASON)))
        if events:
            (recorded,) = self._store.record([events])
            self._told([kind.name.lower() for kind in recorded.kinds])
        if entries:
            self._acknowledge(entries, refused)

    def _event(self, entry: Entry, features: EventFeatures, now: int, hints: Hints) -> Event:
        """Raises SluiceError, DecodeError, ParseError, ValueError where it is none."""
        added = int(entry.id.split(b"-")[0]) * MICROS
        latest = max(now, min(added, now + MOST_BEHIND))
        return check_event(self._parsed(entry), features, self._serve, latest, hints, min(added, now))

    def _parsed(self, entry: Entry) -> pb.Event:
        most = self._serve.max_request_kb << 10
        if any(len(value) > most for value in entry.fields.values()):
            raise ValueError(f"it has more than {most} bytes; raise serve.max_request_kb, or send less")
        if b"event" in entry.fields:
            return pb.Event.FromString(entry.fields[b"event"])
        if b"json" not in entry.fields:
            raise ValueError("it has no field `event` and no `json`; add one")
        return json_format.Parse(entry.fields[b"json"], pb.Event())

    def _acknowledge(self, entries: Sequence[Entry], refused: Sequence[tuple[Entry, str]]) -> None:
        """Keeping and acknowledging are one where the Redis takes both: a reader that dies keeps nothing twice. At
        its `maxmemory` it takes no transaction, but a mere acknowledgement."""
        read, where, kept = [entry.id for entry in entries], f"kept in {REFUSED}", True
        if not refused:
            self._client.xack(STREAM, self._group, *read)
            return
        try:
            with self._client.pipeline(transaction=True) as pipe:
                for entry, why in refused:
                    pipe.xadd(REFUSED, _kept(entry, why), maxlen=MOST_REFUSED)
                pipe.xack(STREAM, self._group, *read)
                pipe.execute()
        except ResponseError as error:  # it is full, or that key is something else: no event waits for that
            self._client.xack(STREAM, self._group, *read)
            kept = False
            where = f"not kept ({short(str(error))}): they are in {STREAM} from {refused[0][0].id.decode()} on"
        self._refuses("stream", len(refused))
        before, self._refused[kept] = self._refused[kept], self._refused[kept] + len(refused)
        if self._refused[kept].bit_length() > before.bit_length():  # at first, and when they are twice as many
            log.warning("%d events of the stream are refused, and %s; one of them: %s", self._refused[kept], where,
                        refused[0][1])


def _kept(entry: Entry, why: str) -> dict[Any, Any]:
    """Of a refused one."""
    cut = {name: value[:MOST_KEPT] for name, value in entry.fields.items()}
    return {**cut, b"entry": entry.id, b"reason": why}


def _begin(client: redis.Redis, group: str) -> None:
    """A group that is there goes on from where it is, also where its Redis is full and makes no new one."""
    try:
        client.xgroup_create(STREAM, group, id=BEGINNING, mkstream=True)
    except OutOfMemoryError:
        groups: Any = client.xinfo_groups(STREAM) if client.exists(STREAM) else []
        if group.encode() not in [one["name"] for one in groups]:
            raise
    except ResponseError as error:
        if "BUSYGROUP" not in str(error):
            raise
