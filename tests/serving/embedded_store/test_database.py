from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from sqlite3 import IntegrityError
from threading import Barrier

import pytest

from contracts.errors import DataError
from serving.embedded_store.database import opened, transaction

SCHEMA = "CREATE TABLE IF NOT EXISTS notes (text TEXT NOT NULL) STRICT"


def test_what_is_committed_is_seen_by_others_and_after_opening_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "notes.sqlite"
    with closing(opened(path, SCHEMA)) as writer, closing(opened(path, SCHEMA)) as reader:
        with transaction(writer):
            writer.execute("INSERT INTO notes VALUES ('one')")
            assert reader.execute("SELECT * FROM notes").fetchall() == []
        assert reader.execute("SELECT * FROM notes").fetchall() == [("one",)]
    with closing(opened(path, SCHEMA)) as again:
        assert again.execute("SELECT * FROM notes").fetchall() == [("one",)]


def test_nothing_is_kept_of_a_transaction_that_fails(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "notes.sqlite", SCHEMA)) as database:
        with pytest.raises(IntegrityError), transaction(database):
            database.executemany("INSERT INTO notes VALUES (?)", [("one",), (None,)])
        assert database.execute("SELECT * FROM notes").fetchall() == []


def test_every_commit_is_flushed(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "notes.sqlite", SCHEMA)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert database.execute("PRAGMA synchronous").fetchone() == (2,)


def test_workers_that_start_together_make_the_file_together(tmp_path: Path) -> None:
    """Each race is over in a millisecond: of four who open a new file at once about one in eighty was refused."""
    workers = 4

    def open_one(path: Path, together: Barrier) -> None:
        together.wait()
        opened(path, SCHEMA).close()

    with ThreadPoolExecutor(workers) as pool:
        for number in range(100):
            path, together = tmp_path / f"{number}.sqlite", Barrier(workers)
            for opening in [pool.submit(open_one, path, together) for _ in range(workers)]:
                opening.result()


def test_a_file_that_is_no_data_base_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite"
    path.write_bytes(b"something else entirely" * 100)
    with pytest.raises(DataError, match=r"notes\.sqlite cannot be opened"):
        opened(path, SCHEMA)
