"""A journal holds whole batches, and becomes one file whoever publishes it and however often."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from serving.response_log import ledger as ledgers
from serving.response_log.journal import (
    Journal,
    Vanished,
    batches,
    claimed,
    publish,
    published,
    settle,
    writer_and_number,
)
from serving.response_log.response_record import SCHEMA, to_batch
from tests.serving.logged_responses import response

DAY = "2026-03-01"


def batch(*numbers: int) -> bytes:
    return to_batch([response(number) for number in numbers]).serialize().to_pybytes()


def requests(journal: Path) -> list[str]:
    return [name for one in batches(journal) for name in one["request_id"].to_pylist()]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path, DAY, "w", 3)
    made.append(batch(1, 2), 2)
    made.append(batch(3), 1)
    made.sync()
    return made


def test_what_was_appended_is_read_and_hidden_from_who_reads_files(journal: Journal) -> None:
    assert requests(journal.path) == ["r1", "r2", "r3"]
    assert journal.path.name.startswith(".")
    assert (journal.calls, journal.size) == (3, journal.path.stat().st_size)
    assert writer_and_number(journal.path) == ("w", 3)


@pytest.mark.parametrize("lacking", [1, 100, 1000])
def test_half_a_batch_is_passed_over(journal: Journal, lacking: int) -> None:
    os.truncate(journal.path, journal.size - lacking)
    assert requests(journal.path) == ["r1", "r2"]


@pytest.mark.parametrize("instead", [b"\0", b"\x7f"])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_batch_whose_last_pages_were_never_written_is_no_danger(
    journal: Journal, share: float, instead: bytes
) -> None:
    """As after a loss of power: what came before it is there, and nothing reads beyond it."""
    before = journal.path.stat().st_size
    rows = [response(number, items=400) for number in range(40)]
    journal.append(to_batch(rows).serialize().to_pybytes(), len(rows))
    journal.sync()
    size = journal.path.stat().st_size
    with journal.path.open("r+b") as file:
        start = before + int(share * (size - before)) // 4096 * 4096
        file.seek(start)
        file.write(instead * (size - start))
    found = requests(journal.path)
    assert found in (["r1", "r2", "r3"], ["r1", "r2", "r3", *(row.request_id for row in rows)])
    publish(journal.path)
    assert "" not in pq.read_table(published(journal.path))["status"].to_pylist()


def test_half_a_head_holds_nothing(journal: Journal) -> None:
    os.truncate(journal.path, 10)
    assert requests(journal.path) == []
    assert publish(journal.path) == 0
    assert list(journal.path.parent.glob("*.parquet")) == []


def test_published_twice_it_is_one_file(journal: Journal) -> None:
    assert publish(journal.path) == publish(journal.path) == 3
    [file] = journal.path.parent.glob("*.parquet")
    assert file == published(journal.path)
    table = pq.ParquetFile(file).read()
    assert table.schema.equals(SCHEMA)
    assert table["request_id"].to_pylist() == ["r1", "r2", "r3"]


def test_one_that_is_gone_has_been_published_or_holds_nothing(journal: Journal) -> None:
    publish(journal.path)
    journal.path.unlink()
    assert publish(journal.path) == 3
    published(journal.path).unlink()
    assert publish(journal.path) == 0


def test_once_settled_it_is_known_and_gone(journal: Journal, tmp_path: Path) -> None:
    ledger = ledgers.new(tmp_path, "w", ledgers.UNKNOWN)
    assert settle(journal.path, ledger) == 3
    assert settle(journal.path, ledger) == 3  # again, after an end in between
    assert (ledger.published, journal.path.exists()) == (3, False)
    ledger.close(remove=True)


def test_it_is_claimed_once_its_owner_is_done(journal: Journal) -> None:
    with claimed(journal.path) as mine:
        assert not mine
    journal.close()
    with claimed(journal.path) as mine, claimed(journal.path) as other:
        assert (mine, other) == (True, False)
    journal.path.unlink()
    with claimed(journal.path) as mine:
        assert not mine


def test_one_that_cannot_be_locked_leaves_no_file_and_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system that has no locks, or none left: it is tried again each second."""
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    held = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No locks"):
        Journal(tmp_path, DAY, "w", 1)
    assert list(tmp_path.glob("day=*/*")) == []
    assert len(os.listdir("/proc/self/fd")) == held


def test_a_journal_that_was_removed_says_what_went_with_it(journal: Journal) -> None:
    journal.path.unlink()
    with pytest.raises(Vanished) as caught:
        journal.append(batch(4), 1)
    assert caught.value.calls == 3
