"""The last change of every item and kind, numbered in the order of their commits (SQLite, in write-ahead mode).

A change replaces the one before it of the same item and kind under a new, higher sequence number: so the file grows
with the items that ever changed and not with the changes, and who follows the numbers misses nothing. The last one
stays, withdrawals too: it is what refuses an older one that is sent again, and what the next bundle is told.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from serving.catalogue.change import Change
from serving.embedded_store.database import keep_pages, lasting_transaction, opened

FILE = "catalogue.sqlite"
SCHEMA = """
CREATE TABLE IF NOT EXISTS changes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    item TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('item', 'bid', 'stock')),
    version INTEGER NOT NULL,
    event_time INTEGER NOT NULL,
    arrived INTEGER NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (item, kind)
) STRICT;
"""
STORED = "SELECT version FROM changes WHERE item = ? AND kind = ?"
OF_ITEMS = ("SELECT sequence, item, kind, version, event_time, arrived, value FROM changes "
            "WHERE kind IN ('bid', 'stock') AND item IN (SELECT value FROM json_each(?))")
PUT = "INSERT OR REPLACE INTO changes (item, kind, version, event_time, arrived, value) VALUES (?, ?, ?, ?, ?, ?)"
NUMBERED = ("SELECT sequence, item, kind, version, event_time, arrived, value FROM changes "
            "WHERE sequence IN (SELECT value FROM json_each(?)) ORDER BY sequence")
AFTER = ("SELECT sequence, item, kind, version, event_time, arrived, value FROM changes WHERE sequence > ? "
         "ORDER BY sequence LIMIT ?")


class ChangeStore:
    """In `folder`, which several processes may share. One thread at a time; each opens its own."""

    def __init__(self, folder: Path) -> None:
        self._database = opened(folder / FILE, SCHEMA)
        self._writes = False

    def close(self) -> None:
        self._database.close()

    def record(self, changes: Sequence[Change]) -> tuple[list[bool], int]:
        """Whether each was newer than what is stored, and the last sequence number; on disk when this returns. Raises
        sqlite3.Error, where the file was removed, too."""
        if not self._writes:
            self._writes = True
            keep_pages(self._database)
        with lasting_transaction(self._database):
            applied = [self._put(change) for change in changes]
            return applied, self.last()

    def check_in_place(self) -> None:
        """Raises sqlite3.OperationalError where others no longer find the file that this one has open."""
        self._database.check_in_place()

    def _put(self, change: Change) -> bool:
        stored = self._database.execute(STORED, (change.item, change.kind)).fetchone()
        if stored is not None and stored[0] >= change.version:
            return False
        self._database.execute(PUT, (change.item, change.kind, change.version, change.event_time, change.arrived,
                                     change.value))
        return True

    def last(self) -> int:
        """The highest sequence number, 0 without any."""
        return int(self._database.execute("SELECT coalesce(max(sequence), 0) FROM changes").fetchone()[0])

    def after(self, sequence: int, most: int) -> list[tuple[int, Change]]:
        """The first changes beyond a sequence number, in their order."""
        return self._found(AFTER, sequence, most)

    def numbered(self, sequences: Sequence[int]) -> list[tuple[int, Change]]:
        """Those of these sequence numbers that no later change has replaced, in their order."""
        return self._found(NUMBERED, json.dumps(sequences))

    def numbers_of(self, items: Sequence[str]) -> list[Change]:
        """Their bids and stock."""
        return [change for _, change in self._found(OF_ITEMS, json.dumps(items))]

    def _found(self, query: str, *asked: object) -> list[tuple[int, Change]]:
        return [(number, Change(item=item, kind=kind, version=version, event_time=event_time, arrived=arrived,
                                value=value))
                for number, item, kind, version, event_time, arrived, value in self._database.execute(query, asked)]
