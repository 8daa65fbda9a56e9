"""One version of users into a folder of the host, in place of the one before: one transaction, so that whoever reads,
and whoever comes after a writer that was killed, has all of the old one or all of the new one.

Rows are appended and the index is made at the end: users in any order cost one pass over the file, not a page each.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from contracts.errors import DataError
from contracts.shown import short
from serving.embedded_store.database import is_busy, keep_pages, opened, transaction
from serving.users.embedded_tables import CURRENT, FILE, INDEX, SCHEMA, TABLES
from serving.users.published_users import Rows, Version, check_order, read_version


def publish(folder: Path, version: Version, rows: Iterator[Rows], older: bool = False) -> str | None:
    """The name of the version before. Raises DataError while another one publishes, where a key comes twice or a row
    not at all, where the disk fails, and where the version before is later, unless `older`."""
    with closing(opened(folder / FILE, SCHEMA)) as database:
        keep_pages(database)
        try:
            with transaction(database):
                before = _before(database)
                if not older:
                    check_order(before, version)
                _replace(database, version, rows)
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.IntegrityError:
            raise DataError("the online table of users has a key twice; what was read before is still read: run "
                            "`sluice features` again, and publish") from None
        except sqlite3.Error as error:
            raise DataError(_failed(folder / FILE, error)) from None
    return before.name if before else None


def _replace(database: sqlite3.Connection, version: Version, rows: Iterator[Rows]) -> None:
    database.execute("DROP TABLE users")
    database.execute(TABLES)
    for some in rows:
        database.executemany("INSERT INTO users VALUES (?, ?)", [(user, told.encode()) for user, told in some])
    database.execute(INDEX)
    written = int(database.execute("SELECT count(*) FROM users").fetchone()[0])
    if written != version.rows:
        raise DataError(f"{written} users of {version.rows} were there to publish; what was read before is still read: "
                        "publish again once nothing writes to the run")
    database.execute("INSERT OR REPLACE INTO version VALUES (1, ?)", (version.model_dump_json(),))


def _before(database: sqlite3.Connection) -> Version | None:
    found = database.execute(CURRENT).fetchone()
    try:
        return None if found is None else read_version(found[0].encode())
    except DataError:  # of another release
        return None


def _failed(path: Path, error: sqlite3.Error) -> str:
    if is_busy(error):
        return f"another `sluice publish-features` writes to {path}; wait for its end, and publish again"
    return (f"{path} cannot be written ({short(str(error))}); what was read before is still read: give the disk room, "
            "or move a broken file away, and publish again")
