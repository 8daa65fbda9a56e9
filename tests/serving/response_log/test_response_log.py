"""The response log: what was appended is read back or counted as lost, whatever ends the process and whatever the disk
does."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from contracts.errors import ConfigError
from serving.response_log import ledger
from serving.response_log.journal import Journal
from serving.response_log.response_log import ResponseLog
from serving.response_log.response_record import LOST, SCHEMA, ResponseRecord
from tests import small_disk
from tests.serving.logged_responses import NOON, response
from tests.serving.read_log import calls, quick, read, rows, until

ROOT = Path(__file__).parents[3]
DAY = "day=2026-03-01"


def unwritable(number: int) -> ResponseRecord:
    return replace(response(number), scores=["much"] * 3)  # type: ignore[list-item]


def test_what_was_appended_is_read_back_by_day(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path / "answers")
    given = [response(1), response(2, items=0), response(3, NOON + timedelta(days=1))]
    for row in given:
        log.append(row)
    log.close()
    assert sorted(path.name for path in (tmp_path / "answers").iterdir()) == [DAY, "day=2026-03-02"]
    found = rows(tmp_path / "answers")
    maps = [{name: dict(row[name]) for name in ("context", "context_lists")} for row in found]
    assert [ResponseRecord(**{**row, **held}) for row, held in zip(found, maps, strict=True)] == given
    files = (tmp_path / "answers").glob("day=*/answers-*.parquet")
    assert all(pq.ParquetFile(path).schema_arrow.equals(SCHEMA) for path in files)


def test_nothing_is_left_beside_the_files(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path)
    assert list(ledger.pages(tmp_path))
    log.append(response(1))
    log.close()
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".parquet"]
    assert list(ledger.pages(tmp_path)) == []


def test_a_log_that_has_ended_is_not_begun_again_by_another_close(tmp_path: Path) -> None:
    """The writing thread may end before `close` looks whether it lives: what it closed stays closed."""
    log = ResponseLog(tmp_path)
    log.append(response(1))
    log.close()
    log.close()
    assert log.state.cause == ""
    assert read(tmp_path) == ["r1"]
    assert list(ledger.pages(tmp_path)) == []


def test_rows_of_many_turns_make_one_file(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path, flush_seconds=0.01)
    for number in range(5):
        log.append(response(number))
        until(lambda: log.state.waiting == 0)
    log.close()
    [path] = tmp_path.glob("day=*/answers-*.parquet")
    assert pq.ParquetFile(path).metadata.num_row_groups == 1
    assert read(tmp_path) == [f"r{number}" for number in range(5)]


def test_files_appear_while_the_log_is_open(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path, flush_seconds=0.01, file_seconds=0.05)
    log.append(response(1))
    until(lambda: read(tmp_path) == ["r1"])
    assert log.state == ("", 0, 0, 0)
    log.close()


SLACK = 4.0  # seconds that a busy machine may hold the writing thread back
WRITES = """
import sys, time; from pathlib import Path
from serving.response_log.response_log import ResponseLog
from tests.serving.logged_responses import response
log = ResponseLog(Path(sys.argv[1]))
for number in range(10**9):
    log.append(response(number)); print(number, time.monotonic(), flush=True); time.sleep(0.001)
"""


@pytest.mark.slow
def test_a_killed_process_loses_the_last_second_at_most_and_all_of_it_is_counted(tmp_path: Path) -> None:
    """The writer says when it appended what; all that is older than the interval is there, the rest counted."""
    folder, said = tmp_path / "answers", tmp_path / "said"
    with said.open("w") as out:
        writer = subprocess.Popen([sys.executable, "-c", WRITES, str(folder)], stdout=out, cwd=ROOT)
    until(lambda: said.exists() and said.read_text().count("\n") > 1500, 60)
    writer.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    writer.wait()
    ResponseLog(folder).close()
    lines = [line.split() for line in said.read_text().splitlines(keepends=True) if line.endswith("\n")]
    appended, found, lost = {f"r{name}": float(when) for name, when in lines}, read(folder), calls(folder, LOST)
    assert found
    assert len(found) == len(set(found))
    assert 0 <= len(found) + lost - len(appended) <= 1  # it may have been killed before it said its last word
    assert all(killed - when < 1.0 + SLACK for name, when in appended.items() if name not in set(found))
    ResponseLog(folder).close()
    assert calls(folder, LOST) == lost  # counted once


def test_a_living_process_counts_for_a_dead_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving.response_log.log_writer.LOOK_SECONDS", 0.05)
    living = quick(tmp_path)
    dies = "log.enter(); log.enter(); log.append(response(7), entered=True); time.sleep(60)"
    code = WRITES.partition("for")[0].replace("(Path(sys.argv[1]))", "(Path(sys.argv[1]), flush_seconds=0.01)") + dies
    dead = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT)
    until(lambda: any(path.stat().st_size > 4000 for path in list(tmp_path.glob("day=*/.*.arrows"))), 60)
    dead.kill()
    dead.wait()
    until(lambda: calls(tmp_path, LOST) == 1)  # the call that had begun
    living.close()
    assert read(tmp_path) == ["r7"]
    assert calls(tmp_path, LOST) == 1


@pytest.mark.slow
def test_a_reader_never_meets_a_half_written_file(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path, flush_seconds=0.001, file_seconds=0.02)
    for number in range(60):
        log.append(response(number, items=50))
        ds.dataset(tmp_path, format="parquet", partitioning="hive").to_table()
    log.close()
    assert len(read(tmp_path)) == 60


def test_hidden_files_of_killed_writers_are_ignored_and_removed_when_old(tmp_path: Path) -> None:
    day = tmp_path / DAY
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


def test_a_disk_that_cannot_be_written_is_reported_and_nothing_is_lost_when_it_recovers(tmp_path: Path) -> None:
    day = tmp_path / DAY
    day.write_text("a file where the day's folder should be")
    log = quick(tmp_path)
    log.append(response(1))
    until(lambda: log.state.cause)
    log.append(response(2))
    assert str(tmp_path) in log.state.cause
    assert log.state.waiting == 2
    day.unlink()
    until(lambda: not log.state.cause)
    log.close()
    assert read(tmp_path) == ["r1", "r2"]


FULL = """
import sys; from pathlib import Path
from serving.response_log.response_log import ResponseLog
from tests.serving.logged_responses import response
from tests.serving.read_log import calls, quick, read, until
disk, size = Path(sys.argv[1]), response(0).size
log = quick(disk, most_bytes=10 * size)
log.append(response(0))
until(lambda: read(disk) == ["r0"])
filler = (disk / "filler").open("wb", buffering=0)
try:
    while True:
        filler.write(b"x" * 4096)
except OSError as error:
    assert "No space" in str(error)
for number in range(1, 40):
    log.append(response(number))
until(lambda: "No space" in log.state.cause)
for number in range(40, 100):
    log.append(response(number))
assert log.state.lost > 0
(disk / "filler").unlink()
filler.close()
until(lambda: not log.state.cause)
log.append(response(100))
log.close()
found = read(disk)
assert len(found) == len(set(found)) >= 3
assert len(found) + calls(disk, "LOST") == 101
assert calls(disk, "LOST") == log.state.lost
assert [path for path in disk.rglob(".answers*") if path.exists()] == []
print("counted")
"""


def test_a_full_disk_is_reported_and_what_finds_no_room_is_counted_to_the_row(tmp_path: Path) -> None:
    assert small_disk.run(FULL, tmp_path / "disk", "1m") == "counted\n"


LIMITED = """
import itertools, resource, sys, time; from pathlib import Path
from serving.response_log.response_log import ResponseLog
from tests.serving.logged_responses import response
log = ResponseLog(Path(sys.argv[1]), flush_seconds=0.01, most_bytes=60_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
end = time.monotonic() + 60
for number in itertools.count():
    log.append(response(number)); time.sleep(0.001)
    if log.state.cause and log.state.lost:
        break
    assert time.monotonic() < end
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.append(response(number + 1)); log.close()
print(number + 2)
"""


def test_a_limit_on_the_size_of_files_is_survived_and_counted_to_the_row(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
                          check=True)
    assert calls(tmp_path, LOST) > 0
    assert len(read(tmp_path)) + calls(tmp_path, LOST) == int(done.stdout)


def test_memory_is_bounded_in_bytes_and_what_has_no_room_is_counted(tmp_path: Path) -> None:
    (tmp_path / DAY).write_text("")
    size = response(0).size
    log = ResponseLog(tmp_path, most_bytes=3 * size, flush_seconds=60)
    for number in range(5):
        log.append(response(number))
    log.append(replace(response(5), context={"note": "x" * 10 * size}))
    assert log.state[1:] == (3, 3, 0)
    (tmp_path / DAY).unlink()
    log.close()
    assert read(tmp_path) == ["r0", "r1", "r2"]
    assert calls(tmp_path, LOST) == 3


def test_a_row_that_no_column_can_hold_costs_itself_alone(tmp_path: Path) -> None:
    log = quick(tmp_path)
    for number in range(20):
        log.append(unwritable(number) if number == 13 else response(number))
    log.close()
    assert len(read(tmp_path)) == 19
    assert (calls(tmp_path, LOST), log.state.lost) == (1, 1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_writing_thread_that_dies_is_started_anew_and_counted(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path, flush_seconds=0.2)  # it dies while it waits
    log.append(response(0))
    until(lambda: log.state.waiting == 0)
    for death in range(1, 4):
        thread = next(one for one in threading.enumerate() if one.name == "answer-log")
        assert ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)) == 1
        thread.join(20)
        log.append(response(death))
        log.tend()
        assert log.state.restarts == death
        until(lambda: log.state.waiting == 0)
    log.close()
    assert read(tmp_path) == ["r0", "r1", "r2", "r3"]
    assert log.state.lost == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("again", [True, False])
def test_a_writing_thread_that_the_system_does_not_give_is_said_and_asked_for_again(
    again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it gives none until the end, what waits is written at the end."""
    def none(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    log = ResponseLog(tmp_path, flush_seconds=0.2)  # it dies while it waits
    log.append(response(0))
    until(lambda: log.state.waiting == 0)
    thread = next(one for one in threading.enumerate() if one.name == "answer-log")
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
    thread.join(20)
    log.append(response(1))
    with monkeypatch.context() as limits:
        limits.setattr(threading.Thread, "start", none)
        for _ in range(2):
            log.tend()
            assert "can't start new thread" in log.state.cause
            assert log.state.restarts == 0
        if not again:
            log.close()
    if again:
        log.tend()
        assert log.state.restarts == 1
        until(lambda: not log.state.cause)
        log.close()
    assert read(tmp_path) == ["r0", "r1"]


def test_rows_whose_folder_is_removed_under_them_are_counted(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path, flush_seconds=0.01)
    log.append(response(1))
    until(lambda: list(tmp_path.glob("day=*/.*.arrows")) and not log.state.waiting)
    shutil.rmtree(tmp_path / DAY)
    log.append(response(2))
    until(lambda: log.state.lost == 1)
    log.close()
    assert read(tmp_path) == ["r2"]
    assert calls(tmp_path, LOST) == 1


def test_what_cannot_be_written_at_the_end_is_counted_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serving.response_log.response_log.CLOSE_SECONDS", 0.3)
    (tmp_path / DAY).write_text("")
    log = quick(tmp_path)
    for number in range(4):
        log.append(response(number))
    log.close()
    (tmp_path / DAY).unlink()
    ResponseLog(tmp_path).close()
    assert (read(tmp_path), calls(tmp_path, LOST)) == ([], 4)


def test_calls_that_began_and_never_ended_are_counted(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path)
    log.enter()
    log.enter()
    log.append(response(1), entered=True)
    log.close()
    assert (read(tmp_path), calls(tmp_path, LOST)) == (["r1"], 1)


def test_calls_that_were_never_read_are_summed(tmp_path: Path) -> None:
    log = ResponseLog(tmp_path)
    for _ in range(500):
        log.count("RESOURCE_EXHAUSTED")
    log.close()
    assert calls(tmp_path, "RESOURCE_EXHAUSTED") == 500
    assert len(rows(tmp_path)) < 10


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="give another folder"):
        ResponseLog(tmp_path / "file" / "answers")


def test_nobody_waits_for_a_disk_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop's words return while the writing thread sits in the disk, and when it comes back at once."""
    monkeypatch.setattr("serving.response_log.response_log.STUCK_SECONDS", 0.05)
    answers, append, hangs = threading.Event(), Journal.append, threading.Event()

    def hanging(self: Journal, batch: bytes, calls: int) -> None:
        hangs.set()
        assert answers.wait(60)
        append(self, batch, calls)

    monkeypatch.setattr(Journal, "append", hanging)
    log = quick(tmp_path)
    log.append(response(0))
    assert hangs.wait(20)
    for number in range(1, 500):  # would never return where a lock is held over the disk
        log.enter()
        log.append(response(number), entered=True)
        log.count("RESOURCE_EXHAUSTED")
        log.tend()
    until(lambda: "has not answered for" in log.state.cause)
    assert log.state.restarts == 0
    answers.set()
    log.close()
    assert (len(read(tmp_path)), calls(tmp_path, "RESOURCE_EXHAUSTED"), calls(tmp_path, LOST)) == (500, 499, 0)
