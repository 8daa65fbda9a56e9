"""SQLite as the server keeps what it must not lose: a write-ahead log that is flushed before a commit returns.

All workers of a host open the same file: readers never wait, writers take turns. A process that is killed at any moment
leaves the last commit, and the next one that opens the file goes on from there.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from contracts.errors import DataError

BUSY_SECONDS = 10.0  # that a writer waits for others
LOOK_AGAIN_SECONDS = 0.01
# What is written falls on pages anywhere in the indices: these stay in memory (KiB), and go back to the file after so
# many pages of the log, not after each few hundred rows.
WRITING = ("cache_size = -32768", "wal_autocheckpoint = 8000")
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Database(sqlite3.Connection):
    """Tells the files that it has opened, its write-ahead log among them, from others in their place."""

    path: Path
    files: Sequence[tuple[int, int] | None]

    def check_in_place(self) -> None:
        """Raises OperationalError where one was removed or replaced: what is written then nobody finds again."""
        if _files_of(self.path) != self.files:
            raise sqlite3.OperationalError(f"{self.path.name} was removed or replaced; start the server anew")


def _files_of(path: Path) -> Sequence[tuple[int, int] | None]:
    return [_file_of(f"{path}{end}") for end in ("", "-wal", "-shm")]


def _file_of(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def opened(path: Path, schema: str) -> Database:
    """With the tables of `schema` (`CREATE ... IF NOT EXISTS`), in autocommit; its folder is made. For one thread at a
    time. Raises DataError where the file is no data base, cannot be written, or stays busy for BUSY_SECONDS."""
    until = time.monotonic() + BUSY_SECONDS
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                return _connected(path, schema)
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                if time.monotonic() > until:
                    raise DataError(f"another process writes to {path} for more than {BUSY_SECONDS:g} s; wait for its "
                                    "end, and try again") from None
                time.sleep(LOOK_AGAIN_SECONDS)
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{path} cannot be opened as the server's store ({error}); give a folder that this user may "
                        "write, or move the file away") from None


def _connected(path: Path, schema: str) -> Database:
    """SQLite's busy timeout does not hold for a new file that others make a write-ahead log of at this moment, since
    to wait could be a deadlock: the caller begins anew."""
    database = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False,
                               factory=Database)
    try:
        for setting in (f"busy_timeout = {round(1000 * BUSY_SECONDS)}", "journal_mode = WAL", "synchronous = FULL"):
            database.execute(f"PRAGMA {setting}").fetchall()
        database.executescript(f"BEGIN IMMEDIATE; {schema}; COMMIT")
        database.path, database.files = path, _files_of(path)
    except BaseException:
        database.close()
        raise
    return database


def reading(path: Path, seconds: float) -> sqlite3.Connection:
    """Of a file that is there, and is not written; who finds it locked waits so long. For one thread at a time. Raises
    sqlite3.Error where it cannot be opened."""
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=seconds, isolation_level=None,
                               check_same_thread=False)
    database.execute("PRAGMA query_only = ON").fetchall()
    return database


def is_busy(error: sqlite3.Error) -> bool:
    """Others hold the file: it may be asked again."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in BUSY  # an error of Python's own has none


def keep_pages(database: sqlite3.Connection) -> None:
    """Of a connection that writes much."""
    for setting in WRITING:
        database.execute(f"PRAGMA {setting}").fetchall()


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


@contextlib.contextmanager
def lasting_transaction(database: Database) -> Iterator[None]:
    """One of which others are told: raises OperationalError, too, where the file is no longer the one that the next who
    opens it will find."""
    database.check_in_place()
    with transaction(database):
        yield
    database.check_in_place()
