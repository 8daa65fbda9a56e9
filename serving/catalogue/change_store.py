"""The last change of every item and kind, numbered in the order of their commits (SQLite, in write-ahead mode).

A change replaces the one before it of the same item and kind under a new, higher sequence number: so the file grows
with the items that ever changed and not with the changes, and who follows the numbers misses nothing. The last one
stays, withdrawals too: it is what refuses an older one that is sent again, and what the next bundle is told.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import compress
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
CREATE TABLE IF NOT EXISTS store (mark TEXT NOT NULL) STRICT;
INSERT INTO store SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT mark FROM store);
"""
STORED = ("SELECT changes.item, changes.kind, version FROM json_each(?) AS asked JOIN changes "
          "ON changes.item = json_extract(asked.value, '$[0]') AND changes.kind = json_extract(asked.value, '$[1]')")
OF_ITEMS = ("SELECT sequence, item, kind, version, event_time, arrived, value FROM changes "
            "WHERE kind IN ('bid', 'stock') AND item IN (SELECT value FROM json_each(?))")
WRITTEN = ("item", "kind", "version", "event_time", "arrived", "value")
READ = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(len(WRITTEN)))
PUT = f"INSERT OR REPLACE INTO changes ({', '.join(WRITTEN)}) SELECT {READ} FROM json_each(?)"  # of several the last
NUMBERED = ("SELECT sequence, item, kind, version, event_time, arrived, value FROM changes "
            "WHERE sequence IN (SELECT value FROM json_each(?)) ORDER BY sequence")
AFTER = ("SELECT sequence, item, kind, version, event_time, arrived, value FROM changes WHERE sequence > ? "
         "ORDER BY sequence LIMIT ?")


class ChangeStore:
    """In `folder`, which several processes may share. One thread at a time; each opens its own. `mark` is drawn when
    the file is made, and tells it from one that begins anew in its place."""

    def __init__(self, folder: Path) -> None:
        self._database = opened(folder / FILE, SCHEMA)
        self.mark = str(self._database.execute("SELECT mark FROM store").fetchone()[0])
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
            applied = self._newer(changes)
            put = [[getattr(change, name) for name in WRITTEN] for change in compress(changes, applied)]
            self._database.execute(PUT, [json.dumps(put)])
            return applied, self.last()

    def check_in_place(self) -> None:
        """Raises sqlite3.OperationalError where others no longer find the file that this one has open."""
        self._database.check_in_place()

    def _newer(self, changes: Sequence[Change]) -> list[bool]:
        """Than what is stored and those before it."""
        asked = json.dumps([(change.item, change.kind) for change in changes])
        known = {(item, kind): version for item, kind, version in self._database.execute(STORED, [asked])}
        applied = []
        for change in changes:
            key = change.item, change.kind
            applied.append(key not in known or known[key] < change.version)
            known[key] = max(change.version, known.get(key, change.version))
        return applied

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
