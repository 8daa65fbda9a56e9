"""What a server must know to keep histories and counters event-fresh, as its bundle carries it: the sections of log and
clicks, the fields that are made of events, and the rate that smooths them.

A counter is served event-fresh where its key is the user, the item, or columns of the items' table, and the log is one
whose rows say when they became known (`log.known_time`, `label.clicks.known_time`), and which event they are
(`log.key`, all of it in `label.clicks.on`).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError

from contracts.atomic_write import aside
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.config.log import Clicks, Log
from contracts.config.section import Section, Side
from contracts.config.stages import TIME
from contracts.errors import BundleError, ConfigError
from contracts.table_files import LANDED_CONVERSIONS, landed_folder

FILE = "event_features.json"
ColumnType = Literal["text", "integer", "number", "flag", "list"]
RECENT = 50  # items that a user clicked last, as kept
EVENT = "event_"  # vocabularies of the columns of retrieve.events, before the column


class SharedFolderError(ConfigError):
    """Events of two kinds would be landed in one folder."""


class TimedKeyError(ConfigError):
    """A column that says which impression it is tells its time."""


class EventFeatures(Section):
    """`fresh`: the models were trained on event-fresh counters (features.publish_every = 0), so that they are served;
    else the counters stay those of the last publish. `counters` are those of a user's and an item's own key, `groups`
    those of items by columns of their table. `published` is the moment up to which the bundle's tables know clicks;
    those that are learned later are added to their histories. `columns` are those of the log that fields and histories
    read, besides the roles; `events` is retrieve.events."""

    log: Log
    clicks: Clicks
    counters: tuple[FieldConfig, ...] = ()
    groups: tuple[FieldConfig, ...] = ()
    prior: float = 0.0
    fresh: bool = False
    published: datetime | None = None
    columns: dict[str, ColumnType] = Field({})
    events: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, config: Config, prior: float, published: datetime | None, columns: dict[str, ColumnType],
        item_columns: Collection[str] = (),
    ) -> EventFeatures:
        """`columns` are those of the log that fields read, by their types; those derived from the event's time are left
        out. `item_columns` are those of the items' table.

        Raises ConfigError, with what is missing, where events could not be counted as the pipelines count them, and
        TimedKeyError and SharedFolderError where that alone is in the way."""
        log, clicks = config.log, config.label.clicks
        if clicks is None:
            raise ConfigError("label.clicks is not set: only a log whose clicks are a table of their own can be "
                              "recorded event by event")
        needed = {name: getattr(log, name) for name in ("user_id", "item_id", "event_time", "known_time")}
        needed |= {"key": log.key, "clicks.known_time": clicks.known_time}
        missing = [name for name, value in needed.items() if not value]
        if missing:
            raise ConfigError(f"log.{missing[0]} is not set: without it the log does not tell what was known when of "
                              "which event".replace("log.clicks", "label.clicks"))
        apart = sorted(set(log.key) - set(clicks.on))
        if apart:
            raise ConfigError(f"label.clicks.on lacks {apart[0]!r} of log.key: a click must name one impression")
        _check_keys(log, clicks)
        _check_folders(log, clicks)
        counters = tuple(field for field in config.fields if _countable(field, config))
        groups = tuple(field for field in config.fields if field.kind == "counter" and field.side == "item"
                       and field not in counters and set(field.by) <= set(item_columns))
        return cls(log=log, clicks=clicks, counters=counters, groups=groups, prior=prior,
                   fresh=config.features.publish_every == 0, published=published,
                   columns={name: kind for name, kind in columns.items() if name not in log.clock_columns},
                   events=config.retrieve.events)

    @property
    def reads_events(self) -> bool:
        """Whether encoders are told more of an event than its item."""
        return bool(self.events)

    @property
    def event_columns(self) -> tuple[str, ...]:
        """Columns whose values go with the items of a history."""
        return tuple(name for name in self.events if name != TIME)

    @property
    def label_window(self) -> int:
        """Seconds."""
        return self.clicks.window

    @property
    def longest(self) -> int:
        """Seconds of the longest window of a counter; 0 without any."""
        return max((window for field in (*self.counters, *self.groups) for window in field.windows), default=0)

    def times(self, of_clicks: bool) -> tuple[str, str]:
        """The columns of the event's time and of when it was known."""
        table = self.clicks if of_clicks else self.log
        return str(table.event_time), str(table.known_time)

    @property
    def readable(self) -> list[str]:
        """Columns that an event may tell besides those of its roles; a derived one as fields read it."""
        return sorted({*self.columns, *self.log.key, *self.clicks.on} - self.log.clock_columns)

    def column_type(self, name: str) -> ColumnType | None:
        """None of a column that nobody reads; keys that no field reads are text."""
        return self.columns.get(name) or ("text" if name in self.readable else None)

    def also(self, columns: Mapping[str, ColumnType]) -> EventFeatures:
        """With columns that other bundles read, or have read: they are recorded as these took them. Not those whose
        names differ from its own in case alone: readers that ignore it would find one name twice."""
        own = {name.lower() for name in self.columns}
        others = {name: type_ for name, type_ in columns.items() if name.lower() not in own}
        return self.model_copy(update={"columns": {**others, **self.columns}})

    def of_side(self, side: Side) -> list[FieldConfig]:
        """Counters."""
        return [field for field in self.counters if field.side == side]

    def write(self, folder: Path) -> None:
        with aside(folder / FILE) as draft:
            draft.write_text(self.model_dump_json(indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> EventFeatures | None:
        """None where the bundle's log could not be recorded. Raises BundleError."""
        path = folder / FILE
        if not path.exists():
            return None
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except ValidationError as error:
            raise BundleError(f"{path}: {error.errors()[0]['msg']}; assemble the bundle again") from None


class ToldEvents(NamedTuple):
    """What somebody tells of recent items beside the items, raw: a request, a stored row, the events of a host.

    In the order of the items: `times` in microseconds, 0 unknown, or none of them; `columns` by name, each as long
    as there are items, None unknown."""

    times: Sequence[int] = ()
    columns: Mapping[str, Sequence[str | None]] = MappingProxyType({})

    def first(self, count: int) -> ToldEvents:
        """Of the first items alone."""
        return ToldEvents(self.times[:count], {name: values[:count] for name, values in self.columns.items()})


NOTHING_TOLD = ToldEvents()


def _check_keys(log: Log, clicks: Clicks) -> None:
    """Raises TimedKeyError where an event could tell a column neither by its time nor beside it."""
    times = {log.event_time, log.known_time, clicks.event_time, clicks.known_time} | log.clock_columns
    timed = next((name for name in clicks.on if name in times), None)
    if timed is not None:
        raise TimedKeyError(
            f"{timed!r} of label.clicks.on{' and log.key' if timed in log.key else ''} is a time of the event, or "
            f"derived from {log.event_time!r}: a recorded event tells its time by itself, and no column may tell it "
            "again; name columns that a caller knows, such as those of the request and the item")


def _check_folders(log: Log, clicks: Clicks) -> None:
    """Raises SharedFolderError where the files of one kind of events would be written over those of another."""
    landed = [(f"log.path {log.path!r}", landed_folder(log.path)),
              (f"label.clicks.path {clicks.path!r}", landed_folder(clicks.path)),
              ("the conversions that are recorded", LANDED_CONVERSIONS)]
    for (one, folder), (other, same) in itertools.combinations(landed, 2):
        if folder == same:
            raise SharedFolderError(f"{one} and {other} are both landed in the folder {folder!r} of the recorded log, "
                                    "where one would be written over the other: give paths that end otherwise, or "
                                    "that differ below {data}/")


def _countable(field: FieldConfig, config: Config) -> bool:
    """Is it a counter of the key of its own side?"""
    table = config.users if field.side == "user" else config.items
    role = config.log.user_id if field.side == "user" else config.log.item_id
    keys = {role, table.key if table else role}
    return field.kind == "counter" and len(field.by) == 1 and field.by[0] in keys
