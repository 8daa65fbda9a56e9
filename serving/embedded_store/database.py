"""SQLite as the server keeps what it must not lose: a write-ahead log that is flushed before a commit returns.

All workers of a host open the same file: readers never wait, writers take turns. A process that is killed at any moment
leaves the last commit, and the next one that opens the file goes on from there.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from contracts.errors import DataError

BUSY_SECONDS = 10.0  # that a writer waits for others


def opened(path: Path, schema: str) -> sqlite3.Connection:
    """With the tables of `schema` (`CREATE ... IF NOT EXISTS`), in autocommit; its folder is made. For one thread at a
    time. Raises DataError where the file is no data base, or cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        for setting in ("busy_timeout = 10000", "journal_mode = WAL", "synchronous = FULL"):
            database.execute(f"PRAGMA {setting}").fetchall()
        database.executescript(schema)
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{path} cannot be opened as the server's store ({error}); give a folder that this user may "
                        "write, or move the file away") from None
    return database


@contextlib.contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, and on disk at the end. Waits for other writers."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise
