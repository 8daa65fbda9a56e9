"""What a process that was killed has left is published and counted, and keeps no other from its own."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from serving.response_log import ledger as ledgers
from serving.response_log.journal import Journal, published
from serving.response_log.response_record import LOST, to_batch
from tests.serving.driven_log_writer import SERVED, Driven
from tests.serving.logged_responses import response

ROOT = Path(__file__).parents[3]
DAY = "2026-03-01"


def left(folder: Path, *numbers: int, day: str = DAY, number: int = 1) -> Path:
    """A journal, of nobody who lives."""
    journal = Journal(folder, day, "dead", number)
    journal.append(to_batch([response(one) for one in numbers]).serialize().to_pybytes(), len(numbers))
    journal.close()
    return journal.path


@contextlib.contextmanager
def died(folder: Path, taken: int) -> Iterator[Path]:
    """The page of the writer of what is `left`, which in the end nobody keeps."""
    page = ledgers.new(folder, "dead", SERVED)
    page.take(taken)
    page.close(remove=False)
    try:
        yield page.path
    finally:
        page.path.unlink(missing_ok=True)


@contextlib.contextmanager
def heir(folder: Path) -> Iterator[Driven]:
    """Who comes next."""
    living = Driven(folder)
    try:
        yield living
    finally:
        living.writer.ledger.close(remove=True)


def no_room(journal: Path) -> None:
    """For its file, and nobody can remove what is in its place, old as it is."""
    draft = published(journal)
    (draft := draft.with_name(f".{draft.name}")).mkdir()
    os.utime(draft, (0, 0))


def of_other_columns(journal: Path) -> None:
    batch = pa.record_batch({"status": ["OK"], "calls": [1]})
    with pa.OSFile(str(journal), "wb") as file, pa.ipc.new_stream(file, batch.schema) as stream:
        stream.write_batch(batch)


def without_a_status(journal: Path) -> None:
    batch = pa.record_batch({"calls": [1]})
    with pa.OSFile(str(journal), "wb") as file, pa.ipc.new_stream(file, batch.schema) as stream:
        stream.write_batch(batch)


def killed(folder: Path, code: str) -> None:
    """A process does this, and ends without a word."""
    head = ("import os, sys; from pathlib import Path; from tests.serving.driven_log_writer import Driven\n"
            "from tests.serving.logged_responses import response; dead = Driven(Path(sys.argv[1]))\n")
    done = subprocess.run([sys.executable, "-c", f"{head}{code}; os._exit(9)", str(folder)], cwd=ROOT)
    assert done.returncode == 9


def test_what_a_dead_writer_left_is_published_and_the_rest_counted(tmp_path: Path) -> None:
    killed(tmp_path, "dead.give(response(1), response(2)); dead.writer.turn(); dead.give(response(3))")
    heir = Driven(tmp_path)
    assert heir.writer.finish()
    assert heir.rows() == [(LOST, 1), ("r1", 1), ("r2", 1)]
    heir.writer.ledger.close(remove=True)


def test_a_journal_without_a_page_is_published(tmp_path: Path) -> None:
    killed(tmp_path, "dead.give(response(1)); dead.writer.turn(); dead.writer.ledger.path.unlink()")
    heir = Driven(tmp_path)
    assert heir.rows() == [("r1", 1)]
    heir.writer.ledger.close(remove=True)


def test_a_page_that_was_never_filled_stops_nobody(tmp_path: Path) -> None:
    own = ledgers.new(tmp_path, "abc", SERVED)
    own.close(remove=True)
    own.path.touch()
    heir = Driven(tmp_path)
    assert list(ledgers.pages(tmp_path)) == [heir.writer.ledger.path]
    heir.writer.ledger.close(remove=True)


def test_pages_of_dead_writers_go_when_their_logs_are_gone(tmp_path: Path) -> None:
    old = time.time() - 2 * ledgers.ABANDONED_SECONDS
    folders = {name: tmp_path / name for name in ("gone", "young", "there", "alive")}
    pages = {}
    for name, folder in folders.items():
        folder.mkdir()
        pages[name] = ledgers.new(folder, "abc", SERVED)
        if name != "young":
            os.utime(pages[name].path, (old, old))
        if name != "alive":
            pages[name].close(remove=False)
    for name in ("gone", "young", "alive"):
        folders[name].rmdir()
    Driven(tmp_path / "other").writer.ledger.close(remove=True)
    assert [name for name in folders if pages[name].path.exists()] == ["young", "there", "alive"]
    pages.pop("alive").close(remove=True)
    for page in pages.values():
        page.path.unlink(missing_ok=True)


@pytest.mark.parametrize("paged", [True, False], ids=["with a page", "without"])
@pytest.mark.parametrize("damaged", [no_room, of_other_columns, without_a_status])
def test_what_cannot_be_published_stops_nobody_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: Callable[[Path], None], paged: bool
) -> None:
    journal = left(tmp_path, 1)
    damaged(journal)
    with died(tmp_path, 1) if paged else contextlib.nullcontext(), caplog.at_level(logging.ERROR), \
            heir(tmp_path) as living:
        living.give(response(2))
        living.writer.turn()
        assert living.writer.finish()
        assert living.writer.finish()
        assert living.rows() == [("r2", 1)]
        assert living.writer.unsettled == 0
    assert [record.getMessage().startswith(f"{journal}, left by") for record in caplog.records] == [True]
    assert journal.exists()


def test_journals_of_several_days_are_counted_once(tmp_path: Path) -> None:
    """An answer of before midnight that ended after it: the third journal's name comes before the second one's."""
    for number, day in enumerate(("2026-03-01", "2026-03-02", "2026-03-01"), start=1):
        left(tmp_path, number, day=day, number=number)
    with died(tmp_path, 3), heir(tmp_path) as living:
        assert living.writer.finish()
        assert living.rows() == [("r1", 1), ("r2", 1), ("r3", 1)]


def test_it_is_published_as_soon_as_it_can_be(tmp_path: Path) -> None:
    journal = left(tmp_path, 1)
    no_room(journal)
    with died(tmp_path, 2) as page, heir(tmp_path) as living:
        assert living.writer.finish()
        assert living.rows() == []
        next(iter(journal.parent.glob(".*.parquet"))).rmdir()
        assert living.writer.finish()
        assert living.rows() == [(LOST, 1), ("r1", 1)]
        assert not page.exists()


def test_a_page_that_cannot_be_read_stops_nobody(tmp_path: Path) -> None:
    old = time.time() - 2 * ledgers.ABANDONED_SECONDS
    with died(tmp_path, 1) as page:
        with page.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 1000)
        os.utime(page, (old, old))
        for folder in (tmp_path, tmp_path / "other"):
            with heir(folder) as living:
                living.give(response(2))
                assert living.writer.finish()
                assert living.rows() == [("r2", 1)]
        assert page.exists()
