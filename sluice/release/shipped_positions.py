"""How far changes of items of one host were shipped to which other, in the file that holds the changes."""

from __future__ import annotations

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
"""


class Position(NamedTuple):
    """`sequence` is the last of this host's changes that the other has; `theirs` is the other's own last number then:
    one that has a lower one today has lost its folder."""

    sequence: int = 0
    theirs: int = 0


class ShippedPositions:
    """In `folder`. Raises DataError where it cannot be opened."""

    def __init__(self, folder: Path) -> None:
        self._database = opened(folder / FILE, SCHEMA)

    def close(self) -> None:
        self._database.close()

    def of(self, target: str) -> Position:
        found = self._database.execute("SELECT sequence, theirs FROM shipped WHERE target = ?", [target]).fetchone()
        return Position() if found is None else Position(*found)

    def put(self, target: str, position: Position) -> None:
        with transaction(self._database):
            self._database.execute("INSERT OR REPLACE INTO shipped VALUES (?, ?, ?)", [target, *position])
