"""Events of a host in one SQLite file, shared by its workers: written once, known from the commit on.

    known_time   MARGIN after the commit began, and later than that of every event before: no two events share one
    event_time   as told, and before known_time, so that an impression counts from the moment it is known; known_time
                 itself where the log has one column for both, as that is what its landed event says

Nobody is told of an event before its known_time, and a commit is done by then: what a reader knew at t is what the log
says was known at t. Where a disk takes longer than MARGIN that is not so; of such commits `was_late` hears.

An event of an id that is known changes nothing, nor does a click where MOST_CLICKS of its link lie within a label
window of it. An impression of a key and day that are known is kept and landed, as the pipelines see it, and counts no
more, as with them. Clicks may come before what they click on.
"""

from __future__ import annotations

import json
import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from contracts.features.event_features import ColumnType, EventFeatures
from serving.embedded_store.database import keep_pages, lasting_transaction, opened, transaction
from serving.events.event import Event, Kind, encoded, identity, link
from serving.events.shown import Shown

FILE = "events.db"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind INTEGER NOT NULL, at INTEGER NOT NULL,
  known INTEGER NOT NULL, user TEXT, item TEXT, link TEXT, identity TEXT UNIQUE, columns TEXT NOT NULL);
DROP INDEX IF EXISTS of_user;
DROP INDEX IF EXISTS of_item;
DROP INDEX IF EXISTS shown_of_item;
CREATE INDEX IF NOT EXISTS shown_to_user ON events (user) WHERE identity IS NOT NULL;
CREATE INDEX IF NOT EXISTS clicks ON events (link, at) WHERE kind = {int(Kind.CLICK)};
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS columns (name TEXT PRIMARY KEY, type TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS request_ids (name TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS key_orders (columns TEXT, role TEXT, in_order TEXT NOT NULL, PRIMARY KEY (columns, role));
"""
MOST_CLICKS = 16  # of one link within a label window: the one known first counts


class Row(NamedTuple):
    """Of `events`, as it is written."""

    id: str
    kind: Kind
    at: int
    known: int
    user: str
    item: str
    link: str | None
    identity: str | None
    columns: str


WRITTEN = ", ".join(Row._fields)
TAKEN = f"""
CREATE TEMP VIEW taken AS SELECT {WRITTEN} FROM events;
CREATE TEMP TRIGGER take INSTEAD OF INSERT ON taken BEGIN
  INSERT INTO events ({WRITTEN})
  SELECT NEW.id, NEW.kind, NEW.at, NEW.known, NEW.user, NEW.item, NEW.link,
    CASE WHEN EXISTS (SELECT 1 FROM events WHERE identity = NEW.identity) THEN NULL ELSE NEW.identity END, NEW.columns
  WHERE NEW.kind <> {int(Kind.CLICK)} OR (SELECT count(*) FROM (SELECT 1 FROM events INDEXED BY clicks
    WHERE kind = {int(Kind.CLICK)} AND link = NEW.link AND at >= NEW.at - {{window}} AND at <= NEW.at + {{window}}
    LIMIT {MOST_CLICKS})) < {MOST_CLICKS}
  ON CONFLICT (id) DO NOTHING;
END;
"""  # one after the other, each by what is there then, in one statement: SQLite lets other threads run meanwhile
READ = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(len(Row._fields)))
TAKE = f"INSERT INTO taken SELECT {READ} FROM json_each(?)"
NEW = "SELECT known, kind FROM events WHERE seq > ? ORDER BY seq"
AT_ONCE = 16 << 20  # bytes of the columns of a statement's events
MOST_SHOWN = 5_000  # impressions of one user, the latest: who has more within the windows is no person
SHOWN = (
    "SELECT json_group_array(json_array(shown.at, shown.known, shown.item, click.at, click.known, "
    "CASE WHEN :told AND click.at IS NOT NULL THEN shown.columns END)) FROM (SELECT at, known, item, link, columns "
    "FROM events "
    "INDEXED BY shown_to_user WHERE user = :user AND identity IS NOT NULL AND known <= :moment "
    f"ORDER BY seq DESC LIMIT {MOST_SHOWN}) AS shown LEFT JOIN events AS click ON click.seq = ("
    "SELECT min(seq) FROM events INDEXED BY clicks WHERE "
    f"kind = {int(Kind.CLICK)} AND link = shown.link AND at >= shown.at AND at <= shown.at + :window "
    "AND known <= :moment)"
)  # known times rise with seq: the first click is the one known first. One row: SQLite lets other threads run meanwhile
HAS_MORE = "SELECT 1 FROM events INDEXED BY shown_to_user WHERE user = ? AND identity IS NOT NULL LIMIT 1 OFFSET ?"
BEFORE_ALL = "SELECT coalesce(min(seq), 1) - 1 FROM events"
NEXT_KNOWN = "SELECT known FROM events WHERE seq > ? ORDER BY seq LIMIT 1"
LAST = "SELECT seq, known FROM events ORDER BY seq DESC LIMIT 1"
KNOWN_COLUMN = (
    "INSERT INTO columns VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET type = excluded.type "
    "WHERE type <> excluded.type")
FIRST_ORDER = "INSERT INTO key_orders VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
KNOWN = itemgetter(1)
Clock = Callable[[], int]
MARGIN = 50_000  # microseconds


def unheard() -> None:
    """Nobody is told."""


class Recorded(NamedTuple):
    """How many events are new, and how many were there before. `known` is when the last of them is known, `kinds` is
    what the new ones are."""

    new: int
    repeats: int
    known: int = 0
    kinds: tuple[Kind, ...] = ()


class EventStore:
    """One connection: for one thread. `since` is the moment from which on all events are here; `was_late` hears of
    every commit that took longer than the margin. `key` and `on` are log.key and label.clicks.on in the order in which
    this file had those columns first: events are joined by their text, however a later configuration orders them.

    Raises DataError where the file cannot be used.
    """

    def __init__(
        self, folder: Path, features: EventFeatures, clock: Clock, margin: int = MARGIN,
        was_late: Callable[[], None] = unheard,
    ) -> None:
        self.path, self._features, self._clock, self._margin = folder / FILE, features, clock, margin
        self.connection, self._was_late = opened(self.path, SCHEMA), was_late
        self._writes = False
        self._one_time = {kind for kind in Kind if len(set(features.times(kind is Kind.CLICK))) == 1}
        self._label_window = features.label_window * 1_000_000  # microseconds
        with transaction(self.connection):
            self._set_once("since", clock())
            self._set_once("mark", secrets.randbits(63))
            self.connection.executemany(
                KNOWN_COLUMN, [(name, features.column_type(name)) for name in features.readable])
            self.connection.execute(
                "INSERT INTO request_ids SELECT ?1 WHERE ?1 IS NOT NULL ON CONFLICT DO NOTHING",
                [features.log.request_id])
            self.key = self._first_order("log.key", features.log.key)
            self.on = self._first_order("label.clicks.on", features.clicks.on)

    @property
    def since(self) -> int:
        """Microseconds."""
        return self.fact("since")

    @property
    def mark(self) -> str:
        """Tells this log from every other; a copy of the file has the same."""
        return f"{self.fact('mark'):016x}"

    @property
    def columns(self) -> dict[str, ColumnType]:
        """Of the log, that bundles of this folder have read: the one that is served, or one before or after it."""
        return dict(self.connection.execute("SELECT name, type FROM columns").fetchall())

    @property
    def request_ids(self) -> list[str]:
        """The names that `log.request_id` has had in bundles of this folder."""
        return [name for (name,) in self.connection.execute("SELECT name FROM request_ids ORDER BY rowid")]

    @property
    def newest(self) -> int:
        """The last event's number; 0 without events."""
        return int(self.connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])

    @property
    def forgotten(self) -> int:
        """The number before the first event's; 0 without events."""
        return int(self.connection.execute(BEFORE_ALL).fetchone()[0])

    def first_after(self, moment: int) -> int:
        """The number before that of the first event that was known after `moment`, in microseconds. Known times rise
        with numbers: a search by halves, among those that are not forgotten; 0 without any."""
        low, high = self.forgotten, self.newest
        while low < high:
            middle = (low + high) // 2
            (known,) = self.connection.execute(NEXT_KNOWN, [middle]).fetchone()
            low, high = (middle + 1, high) if known <= moment else (low, middle)
        return low

    def fact(self, name: str, default: int = 0) -> int:
        found = self.connection.execute("SELECT value FROM facts WHERE name = ?", [name]).fetchone()
        return default if found is None else int(found[0])

    def set_fact(self, name: str, value: int) -> None:
        """Within a transaction."""
        self.connection.execute(
            "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", [name, value])

    def _set_once(self, name: str, value: int) -> None:
        self.connection.execute("INSERT INTO facts VALUES (?, ?) ON CONFLICT DO NOTHING", [name, value])

    def _first_order(self, role: str, names: Sequence[str]) -> Sequence[str]:
        """Of the same columns in that role; within a transaction."""
        columns = encoded(sorted(names))
        self.connection.execute(FIRST_ORDER, [columns, role, encoded(names)])
        asked = "SELECT in_order FROM key_orders WHERE columns = ? AND role = ?"
        found: list[str] = json.loads(self.connection.execute(asked, [columns, role]).fetchone()[0])
        return found

    def record(self, batches: Sequence[Sequence[Event]]) -> list[Recorded]:
        """All or none, durable on return. Raises sqlite3.Error as the disk does, and where the file was removed."""
        if not self._writes:
            self._writes = True
            keep_pages(self.connection)
            self.connection.executescript(TAKEN.format(window=self._label_window))
        ends = list(accumulate(map(len, batches)))
        with lasting_transaction(self.connection):
            last, known = self.connection.execute(LAST).fetchone() or (0, 0)
            first = max(self._clock() + self._margin, known + 1)
            rows = (self._row(event, first + place) for place, event in enumerate(chain.from_iterable(batches)))
            for piece in _pieces(rows):
                self.connection.execute(TAKE, [encoded(piece)])
            new = self.connection.execute(NEW, [last]).fetchall()
        if self._clock() > first:
            self._was_late()
        kinds = [list[Kind]() for _ in batches]
        for known, kind in new:
            kinds[bisect_right(ends, known - first)].append(Kind(kind))
        return [Recorded(len(found), len(events) - len(found), first + end - 1, tuple(found))
                for found, events, end in zip(kinds, batches, ends, strict=True)]

    def _row(self, event: Event, known: int) -> Row:
        at = known if event.kind in self._one_time else min(known - 1 if event.at is None else event.at, known - 1)
        counts = identity(event.columns, self.key, at) if event.kind is Kind.IMPRESSION else None
        joins = None if event.kind is Kind.CONVERSION else link(event.columns, self.on)
        return Row(event.id, event.kind, at, known, event.user, event.item, joins, counts, encoded(event.columns))

    def of_user(self, user: str, moment: int, told: bool = False) -> Shown:
        """What was shown to the user, as known at `moment` (microseconds); `told`: with the columns of what was
        clicked."""
        found = self.connection.execute(
            SHOWN, {"user": user, "window": self._label_window, "moment": moment, "told": told})
        return Shown.of(sorted(json.loads(found.fetchone()[0]), key=KNOWN), self._features.label_window)

    def has_more(self, user: str, count: int) -> bool:
        """Has the user been shown more than `count` items?"""
        return self.connection.execute(HAS_MORE, (user, count)).fetchone() is not None

    def close(self) -> None:
        self.connection.close()


def _pieces(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Of AT_ONCE and one row at most: SQLite takes no text of a gigabyte."""
    piece, size = list[Row](), 0
    for row in rows:
        piece.append(row)
        size += len(row.columns)
        if size > AT_ONCE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
