"""The response log: what was appended is read back, whatever ends the process and whatever the disk does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from contracts.errors import ConfigError
from serving.server.response_log import ResponseLog
from serving.server.response_record import SCHEMA, ResponseRecord, to_table
from tests.serving.logged_responses import NOON, response

ROOT = Path(__file__).parents[3]


def read(folder: Path) -> list[str]:
    files = sorted(folder.glob("day=*/answers-*.parquet"))
    return sorted(row for path in files for row in pq.ParquetFile(path).read()["request_id"].to_pylist())


def until(condition, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_was_appended_is_read_back_by_day(tmp_path):
    log = ResponseLog(tmp_path / "answers")
    given = [response(1), response(2, items=0), response(3, NOON + timedelta(days=1))]
    for row in given:
        log.append(row)
    log.close()
    assert sorted(path.name for path in (tmp_path / "answers").iterdir()) == ["day=2026-03-01", "day=2026-03-02"]
    files = sorted((tmp_path / "answers").glob("day=*/answers-*.parquet"))
    rows = [row for path in files for row in pq.ParquetFile(path).read().to_pylist()]
    assert [ResponseRecord(**{**row, "context": dict(row["context"])}) for row in rows] == given
    assert all(pq.ParquetFile(path).schema_arrow.equals(SCHEMA) for path in files)


def test_rows_are_on_disk_within_the_flush_interval_while_the_log_is_open(tmp_path):
    log = ResponseLog(tmp_path, flush_seconds=0.05)
    log.append(response(1))
    until(lambda: read(tmp_path) == ["r1"])
    assert log.state == ("", 0, 0)
    log.close()


SLACK = 4.0  # seconds that a busy machine may hold the writing thread back


def test_a_killed_process_loses_the_last_second_at_most_and_leaves_only_whole_files(tmp_path):
    """The writer says when it appended what; all that is older than the interval must be there."""
    code = (
        "import time; from pathlib import Path\n"
        "from serving.server.response_log import ResponseLog; from tests.serving.logged_responses import response\n"
        f"log = ResponseLog(Path({str(tmp_path / 'answers')!r}))\n"
        "for number in range(10**9):\n"
        "    log.append(response(number)); print(number, time.monotonic(), flush=True); time.sleep(0.001)\n"
    )
    with (tmp_path / "said").open("w") as said:
        writer = subprocess.Popen([sys.executable, "-c", code], stdout=said, cwd=ROOT)
    until(lambda: len(list((tmp_path / "answers").glob("day=*/answers-*.parquet"))) >= 3, 60)
    writer.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    writer.wait()
    lines = [line.split() for line in (tmp_path / "said").read_text().splitlines(keepends=True) if line.endswith("\n")]
    appended = {f"r{number}": float(moment) for number, moment in lines}
    found = set(read(tmp_path / "answers"))
    assert found
    assert all(killed - moment < 1.0 + SLACK for name, moment in appended.items() if name not in found)


def test_a_reader_never_meets_a_half_written_file(tmp_path):
    log = ResponseLog(tmp_path, flush_seconds=0.001)
    for number in range(300):
        log.append(response(number, items=50))
        ds.dataset(tmp_path, format="parquet", partitioning="hive").to_table()
    log.close()
    assert len(read(tmp_path)) == 300


def test_hidden_files_of_killed_writers_are_ignored_and_removed_when_old(tmp_path):
    day = tmp_path / "day=2026-03-01"
    day.mkdir()
    old, young = day / ".answers-old.parquet", day / ".answers-young.parquet"
    for path in (old, young):
        path.write_bytes(b"half a file")
    os.utime(old, (time.time() - 3600,) * 2)
    log = ResponseLog(tmp_path)
    log.append(response(1))
    log.close()
    assert not old.exists()
    assert young.exists()
    assert ds.dataset(tmp_path, format="parquet").to_table().num_rows == 1


def test_a_disk_that_cannot_be_written_is_reported_and_nothing_is_lost_when_it_recovers(tmp_path):
    day = tmp_path / "day=2026-03-01"
    day.write_text("a file where the day's folder should be")
    log = ResponseLog(tmp_path, flush_seconds=0.01)
    log.append(response(1))
    until(lambda: log.state.cause)
    log.append(response(2))
    assert str(tmp_path) in log.state.cause
    assert log.state.waiting == 2
    day.unlink()
    until(lambda: not log.state.cause)
    log.close()
    assert read(tmp_path) == ["r1", "r2"]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)]).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def test_a_full_disk_is_reported_and_leaves_no_half_file(small_disk):
    filler = small_disk / "filler"
    log = ResponseLog(small_disk, flush_seconds=0.01)
    with pytest.raises(OSError, match="No space"):
        fill(filler)
    log.append(response(1))
    until(lambda: "No space" in log.state.cause)
    filler.unlink()
    until(lambda: not log.state.cause)
    log.close()
    assert read(small_disk) == ["r1"]
    assert list(small_disk.rglob(".answers*")) == []


def test_memory_is_bounded_and_what_has_no_room_is_counted(tmp_path):
    (tmp_path / "day=2026-03-01").write_text("")
    log = ResponseLog(tmp_path, most_items=12)
    for number in range(5):
        log.append(response(number, items=3))
    assert log.state[1:] == (3, 2)
    (tmp_path / "day=2026-03-01").unlink()
    log.close()
    assert read(tmp_path) == ["r0", "r1", "r2"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="give another folder"):
        ResponseLog(tmp_path / "file" / "answers")


def test_the_table_holds_rows_without_items_and_without_context():
    bare = replace(response(1, items=0), context={})
    assert to_table([bare]).to_pylist()[0]["context"] == []
