from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from sqlite3 import IntegrityError, OperationalError
from threading import Barrier

import pytest

from contracts.errors import DataError
from serving.embedded_store import database
from serving.embedded_store.database import lasting_transaction, opened, reading, transaction
from tests import small_disk

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


def test_a_file_that_another_process_writes_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "notes.sqlite"
    with closing(opened(path, SCHEMA)) as other, transaction(other):
        monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
        with pytest.raises(DataError, match="another process writes"):
            opened(path, SCHEMA)


def test_who_reads_makes_no_file_and_writes_none(tmp_path: Path) -> None:
    path = tmp_path / "no%tes?.sqlite"
    with pytest.raises(OperationalError, match="unable to open"):
        reading(path, 0.0)
    opened(path, SCHEMA).close()
    with closing(reading(path, 0.0)) as found:
        assert found.execute("SELECT * FROM notes").fetchall() == []
        with pytest.raises(OperationalError, match="readonly"):
            found.execute("INSERT INTO notes VALUES ('one')")


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_what_would_be_written_where_nobody_finds_it_is_refused(tmp_path: Path, end: str) -> None:
    """Whether the file, its write-ahead log or its index of that is gone, before a transaction or within it."""
    path = tmp_path / "notes.sqlite"
    with closing(opened(path, SCHEMA)) as first, closing(opened(path, SCHEMA)) as second:
        for one in (first, second, first):
            with lasting_transaction(one):
                one.execute("INSERT INTO notes VALUES ('kept')")
        first.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        second.check_in_place()
        with pytest.raises(OperationalError, match="removed or replaced"), lasting_transaction(first):
            Path(f"{path}{end}").unlink()
        with pytest.raises(OperationalError, match="removed or replaced"), lasting_transaction(second):
            pytest.fail("nothing is to be written")


def test_a_file_in_place_of_the_opened_one_is_another(tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite"
    with closing(opened(path, SCHEMA)) as before:
        for old in tmp_path.iterdir():
            old.rename(tmp_path / f"old-{old.name}")
        with closing(opened(path, SCHEMA)) as now, lasting_transaction(now):
            now.execute("INSERT INTO notes VALUES ('kept')")
        with pytest.raises(OperationalError, match=r"notes\.sqlite was removed or replaced"):
            before.check_in_place()


FULL = """
    import sys
    from pathlib import Path
    from serving.catalogue.change import Change
    from serving.catalogue.change_store import ChangeStore
    from serving.events.event_recorder import EventRecorder, NotKept
    from tests.serving.recorded_events import SetClock, shown_event, START, store_at
    import asyncio, contextlib, sqlite3

    disk = Path(sys.argv[1])
    changes, kept = ChangeStore(disk), 0
    clock = SetClock()
    recorder = EventRecorder(lambda: store_at(disk, clock), lambda: clock.now + 1000)

    async def events(name, number):
        return await recorder.record([shown_event(f"{name} {one}", START, user="u" * 100) for one in range(number)])

    def bids(version, number):
        return changes.record([Change(item=f"i{one}", kind="bid", version=version, event_time=1, arrived=1,
                                      value="1" * 100) for one in range(number)])

    first = asyncio.run(events("first", 10))
    bids(1, 10)
    filler = disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    for attempt in range(3):
        try:
            asyncio.run(events("lost", 5000))
        except NotKept as error:
            print("refused", "full" in str(error))
        try:
            bids(2, 5000)
        except sqlite3.OperationalError as error:
            print("refused", "full" in str(error))
    filler.unlink()
    print(asyncio.run(events("again", 10))[0], sum(bids(3, 20)[0]))
    recorder.close()
    changes.close()
    with contextlib.closing(store_at(disk, clock)) as found, contextlib.closing(ChangeStore(disk)) as changed:
        print(found.connection.execute("SELECT count(*) FROM events").fetchone()[0],
              {change.version for _, change in changed.after(0, 100)})
"""


def test_a_full_disk_refuses_whole_batches_and_takes_them_again_once_it_has_room(tmp_path: Path) -> None:
    """On a real file system of 4 MB: nothing of a refused batch is kept, nothing that was acknowledged is lost."""
    said = small_disk.run(FULL, tmp_path / "disk", "4m").splitlines()
    assert said == ["refused True"] * 6 + ["10 20", "20 {3}"]
