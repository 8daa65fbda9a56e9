"""What was recorded between two numbers of the event store, as impressions of items: those that were shown, and those
of before that were clicked for the first time.

A click finds the impressions that it may be of by what makes an impression one (its key and its day), which the store
has an index of anyway: recording an event pays for no further one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from contracts.features.event_clock import SECOND
from contracts.features.event_features import EventFeatures
from serving.events.event import DAY, Kind, identity
from serving.events.event_store import EventStore

Row = tuple[str, int, int, int | None]  # item, at, known, when its first click was known

FIRST_CLICK = (
    "SELECT {what} FROM events INDEXED BY clicks WHERE "
    f"kind = {int(Kind.CLICK)} AND link = shown.link AND at >= shown.at AND at <= shown.at + :window AND seq {{limit}}")
SHOWN = (
    "SELECT json_group_array(json_array(shown.item, shown.at, shown.known, click.known)) FROM events AS shown "
    f"LEFT JOIN events AS click ON click.seq = ({FIRST_CLICK.format(what='min(seq)', limit='<= :last')}) "
    "WHERE shown.seq > :first AND shown.seq <= :last AND +shown.identity IS NOT NULL"
)
CLICKS = (
    "SELECT json_group_array(json_array(seq, at, known, columns)) FROM events "
    f"WHERE seq > :first AND seq <= :last AND +kind = {int(Kind.CLICK)}"
)
CLICKED = (
    "SELECT json_group_array(json_array(shown.item, shown.at, shown.known, json_extract(told.value, '$[3]'))) "
    "FROM json_each(:told) AS told CROSS JOIN events AS click ON click.seq = json_extract(told.value, '$[1]') "
    "CROSS JOIN events AS shown ON shown.identity = json_extract(told.value, '$[0]') "
    "WHERE shown.seq <= :first AND shown.link = click.link AND shown.at <= click.at "
    f"AND shown.at + :window >= click.at AND NOT EXISTS ({FIRST_CLICK.format(what='1', limit='< click.seq')})"
)  # all three in one row: SQLite lets other threads run meanwhile
LAST_KNOWN = "SELECT known FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1"


class Recorded(NamedTuple):
    """In the order in which they were recorded."""

    shown: Sequence[Row]
    clicked: Sequence[Row]


NOTHING = Recorded([], [])


class RecordedImpressions:
    """`store` is for the thread that reads."""

    def __init__(self, store: EventStore, features: EventFeatures) -> None:
        self._store = store
        self._window = features.label_window * SECOND

    def between(self, first: int, last: int) -> Recorded:
        """Of events numbered in (`first`, `last`]. An impression that is clicked within them is among `shown`, where
        it is as well. Raises sqlite3.Error."""
        bounds = {"first": first, "last": last, "window": self._window}
        clicks = self._read(CLICKS, bounds)
        told = [(name, seq, at, known) for seq, at, known, columns in clicks
                for name in self._identities(at, json.loads(columns))]  # which may hold what is no number to SQLite
        clicked = self._read(CLICKED, bounds | {"told": json.dumps(told)}) if told else []
        return Recorded(self._read(SHOWN, bounds), clicked)

    def known(self, number: int) -> int:
        """When the last event up to that one was known; 0 without any."""
        found = self._store.connection.execute(LAST_KNOWN, [number]).fetchone()
        return 0 if found is None else int(found[0])

    def _identities(self, at: int, columns: dict[str, Any]) -> list[str]:
        """Of the impressions that a click of that moment may be of: a day each. One that was recorded beside a bundle
        of another key is of none."""
        if not set(self._store.key) <= columns.keys():
            return []
        days = range((at - self._window) // DAY, at // DAY + 1)
        return [identity(columns, self._store.key, day * DAY) for day in days]

    def _read(self, query: str, bounds: dict[str, Any]) -> Sequence[Any]:
        found: Sequence[Any] = json.loads(self._store.connection.execute(query, bounds).fetchone()[0])
        return found
