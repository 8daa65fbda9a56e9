"""How far changes of items of one host were shipped to which other, and which of them the other refused, in the file
that holds the changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from serving.catalogue.change_store import FILE
from serving.embedded_store.database import opened, transaction

SCHEMA = """
CREATE TABLE IF NOT EXISTS shipped (
    target TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL,
    theirs INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS shipped_in_vain (
    target TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (target, sequence)
) STRICT;
CREATE TABLE IF NOT EXISTS shipped_store (
    target TEXT PRIMARY KEY,
    mark TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS shipped_again (
    target TEXT PRIMARY KEY,
    bundle TEXT NOT NULL,
    seconds INTEGER NOT NULL
) STRICT;
"""


class Position(NamedTuple):
    """`sequence` is the last of this host's changes that the other was sent; `theirs` is the other's own last number
    then: one that has a lower one today has lost its folder."""

    sequence: int = 0
    theirs: int = 0


class Tried(NamedTuple):
    """When what a target had refused was sent last, in seconds since 1970, and which bundle it had."""

    bundle: str = ""
    seconds: int = 0


class ShippedPositions:
    """In `folder`. Raises DataError where it cannot be opened."""

    def __init__(self, folder: Path) -> None:
        self._database = opened(folder / FILE, SCHEMA)

    def close(self) -> None:
        self._database.close()

    def of(self, target: str) -> Position:
        found = self._database.execute("SELECT sequence, theirs FROM shipped WHERE target = ?", [target]).fetchone()
        return Position() if found is None else Position(*found)

    def mark(self, target: str) -> str:
        """Of the store that the target had, "" where nobody knows."""
        found = self._database.execute("SELECT mark FROM shipped_store WHERE target = ?", [target]).fetchone()
        return "" if found is None else str(found[0])

    def put(self, target: str, position: Position, sent: Sequence[int] = (), refused: Sequence[int] = ()) -> None:
        """The position, and which of the changes `sent` were refused."""
        with transaction(self._database):
            self._database.execute("INSERT OR REPLACE INTO shipped VALUES (?, ?, ?)", [target, *position])
            self._database.execute(
                "DELETE FROM shipped_in_vain WHERE target = ? AND sequence IN (SELECT value FROM json_each(?))",
                [target, json.dumps(sent)])
            self._database.executemany(
                "INSERT OR IGNORE INTO shipped_in_vain VALUES (?, ?)", [(target, sequence) for sequence in refused])

    def refused(self, target: str) -> list[int]:
        """Sequence numbers, in their order."""
        return [number for (number,) in self._database.execute(
            "SELECT sequence FROM shipped_in_vain WHERE target = ? ORDER BY sequence", [target])]

    def tried(self, target: str) -> Tried:
        found = self._database.execute("SELECT bundle, seconds FROM shipped_again WHERE target = ?",
                                       [target]).fetchone()
        return Tried() if found is None else Tried(*found)

    def put_tried(self, target: str, tried: Tried) -> None:
        with transaction(self._database):
            self._database.execute("INSERT OR REPLACE INTO shipped_again VALUES (?, ?, ?)", [target, *tried])

    def begin_again(self, target: str, mark: str) -> Position:
        """For a target that has lost its folder, and has a store of this mark: it has refused nothing yet."""
        with transaction(self._database):
            for table in ("shipped", "shipped_in_vain", "shipped_again"):
                self._database.execute(f"DELETE FROM {table} WHERE target = ?", [target])
            self._database.execute("INSERT OR REPLACE INTO shipped_store VALUES (?, ?)", [target, mark])
        return Position()
