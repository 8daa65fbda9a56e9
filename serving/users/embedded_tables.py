"""Tables of users in a file of the host's own (SQLite, in write-ahead mode): what all its workers read.

    version    one row: JSON of the Version that is read
    users      user -> JSON of a row

A publisher replaces both in one transaction. A question is one statement, so that a row and its version are of the same
commit; readers wait for no publisher.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from contracts.errors import DataError
from contracts.thread_name import name_thread
from serving.embedded_store.database import reading
from serving.users.published_users import Version, read_version
from serving.users.user_tables import NO_TABLES, Found

FILE = "users.db"
TABLES = "CREATE TABLE users (user BLOB NOT NULL, row BLOB NOT NULL) STRICT"
INDEX = "CREATE UNIQUE INDEX of_user ON users (user)"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS version (one INTEGER PRIMARY KEY CHECK (one = 1), told TEXT NOT NULL) STRICT;
{TABLES.replace("TABLE", "TABLE IF NOT EXISTS")};
{INDEX.replace("INDEX", "INDEX IF NOT EXISTS")};
"""
IS_THERE = "SELECT 1 FROM sqlite_schema WHERE name = 'version'"  # a file is made before what is in it
CURRENT = "SELECT told FROM version"
ROW = "SELECT told, (SELECT row FROM users WHERE user = ?) FROM version"
FileId = tuple[int, int]
Answer = TypeVar("Answer")


class EmbeddedTables:
    """Of `folder`, whose file need not be there: one that comes, goes, or is put in place of another is found by the
    next look. `expected` False: no file is nothing to complain of. A file that others hold is waited for `seconds`. A
    thread of its own reads, so that a slow disk holds up nobody who has no time for it."""

    def __init__(self, folder: Path, seconds: float, expected: bool = True) -> None:
        self._path, self._seconds = folder / FILE, seconds
        self.empty = NO_TABLES if expected else ""
        self._database: sqlite3.Connection | None = None
        self._file: FileId | None = None
        self._known: tuple[str, Version] | None = None
        self.thread = ThreadPoolExecutor(1, "user-tables", name_thread)

    async def current(self) -> Version | None:
        return await self._asked(self._current)

    async def row(self, version: Version, user: bytes) -> Found:
        """Of the version that is read at that moment."""
        return await self._asked(lambda: self._row(user))

    async def close(self) -> None:
        """Waits for what is being read."""
        await self._asked(self._forget)
        self.thread.shutdown(wait=True)

    async def _asked(self, question: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self.thread, question)

    def _current(self) -> Version | None:
        there = _file(self._path)
        if self._database is None or there != self._file:
            self._forget()
            if there is None:
                return None
            self._database, self._file = reading(self._path, self._seconds), there
        try:
            is_there = self._database.execute(IS_THERE).fetchone()
            told = self._database.execute(CURRENT).fetchone() if is_there else None
            return None if told is None else self._parsed(told[0])
        except sqlite3.Error:  # of a file that is mended this connection would not know
            self._forget()
            raise

    def _row(self, user: bytes) -> Found:
        """Raises DataError where the file has gone meanwhile."""
        found = self._database.execute(ROW, (user,)).fetchone() if self._database else None
        if found is None:
            raise DataError(NO_TABLES)
        return Found(self._parsed(found[0]), found[1])

    def _parsed(self, told: str) -> Version:
        """Raises DataError for what another release has written."""
        if self._known is None or self._known[0] != told:
            self._known = told, read_version(told.encode())
        return self._known[1]

    def _forget(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = self._file = None


def _file(path: Path) -> FileId | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
