"""Real forks of a real process, with a folder that is no bundle where it matters little what they do."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.serving.process_figures import family
from serving.workers import worker_forks
from serving.workers.worker_forks import ForkedWorker, WorkerForks
from serving.workers.worker_messages import WorkerSettings
from serving.workers.worker_process import WorkerProcess


def settings(folder: Path) -> WorkerSettings:
    return WorkerSettings(folder=folder, host="127.0.0.1", port=0, connection_seconds=1)


def until(condition: Callable[[], object], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def forker() -> int:
    """The last process of this one that forks."""
    return max(filter(forks_for_us, family(os.getpid())))


def forks_for_us(pid: int) -> bool:
    """Not where it has ended since it was listed."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return parent == os.getpid() and b"worker_forks" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@pytest.fixture(scope="module")
def forks() -> Iterator[WorkerForks]:
    with WorkerForks() as made:
        until(lambda: not made.coming)
        yield made


@pytest.mark.slow
def test_a_fork_serves_and_is_stopped_like_any_worker(forks: WorkerForks, bundle_folder: Path) -> None:
    worker = WorkerProcess(settings(bundle_folder), forks)
    assert worker.pid in family(forker())
    until(lambda: worker.loaded)
    assert Path(f"/proc/{worker.pid}/comm").read_text().startswith("worker ")
    assert os.getsid(worker.pid) == worker.pid
    worker.listen()
    until(lambda: worker.ready)
    assert worker.alive
    assert worker.stop(30) == 0
    assert not worker.alive


@pytest.mark.slow
def test_a_fork_says_why_it_cannot_serve(forks: WorkerForks, tmp_path: Path) -> None:
    worker = WorkerProcess(settings(tmp_path), forks)
    until(lambda: not worker.alive)
    assert "is no bundle" in worker.end
    assert worker.stop(20) == 1


@pytest.mark.slow
def test_a_fork_is_killed_and_its_end_is_told(forks: WorkerForks, bundle_folder: Path) -> None:
    first, second = (WorkerProcess(settings(bundle_folder), forks) for _ in range(2))
    assert first.pid != second.pid
    assert first.kill() == -signal.SIGKILL
    os.kill(second.pid, signal.SIGKILL)  # somebody else
    until(lambda: not second.alive)
    assert second.kill() == -signal.SIGKILL
    with suppress(ProcessLookupError):
        os.kill(first.pid, 0)
        pytest.fail("it is there")


@pytest.mark.slow
def test_without_its_forker_a_fork_goes_on_and_others_begin_as_processes(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_forks, "AGAIN_SECONDS", 0.0)
    with WorkerForks() as forks:
        until(lambda: not forks.coming)
        fork = WorkerProcess(settings(bundle_folder), forks)
        os.kill(forker(), signal.SIGKILL)
        time.sleep(0.5)  # until that is heard
        other = WorkerProcess(settings(bundle_folder), forks)
        until(lambda: b"worker_start" in Path(f"/proc/{other.pid}/cmdline").read_bytes())  # empty while it is executed
        assert other.kill() < 0
        until(lambda: fork.loaded)
        assert fork.alive
        fork.kill()
        assert not fork.alive
        forks.tend()
        until(lambda: not forks.coming)
        again = WorkerProcess(settings(bundle_folder), forks)
        assert again.pid in family(forker())
        assert again.kill() == -signal.SIGKILL


@pytest.mark.slow
def test_forks_end_with_their_supervisor_and_so_does_what_forks_them(bundle_folder: Path) -> None:
    """Of whom nothing is left but closed pipes."""
    code = ("import sys, time; from pathlib import Path; from serving.workers.worker_forks import WorkerForks\n"
            "from tests.serving.workers.test_worker_forks import settings, until\n"
            "forks = WorkerForks().__enter__(); until(lambda: not forks.coming)\n"
            "made = forks.begin(settings(Path(sys.argv[1]))); print(made.pid, flush=True); time.sleep(600)")
    with subprocess.Popen([sys.executable, "-c", code, str(bundle_folder)], stdout=subprocess.PIPE, text=True,
                          cwd=Path(__file__).parents[3]) as supervisor:
        assert supervisor.stdout is not None
        fork = int(supervisor.stdout.readline())
        there = family(supervisor.pid)
        assert fork in there
        supervisor.kill()
    until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in there))


def test_a_worker_that_takes_too_long_to_end_is_said_to(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        orders, reports = os.pipe(), os.pipe()
        worker = ForkedWorker(child.pid, {}, orders[1], reports[0])
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(0.01)
        assert worker.poll() is None
        worker.kill()
        assert child.wait() < 0
        assert worker.wait(10) == worker_forks.UNKNOWN_END  # nobody has told how
        worker.terminate()  # nothing happens to whoever has its number now
        for end in (*orders, *reports):
            os.close(end)
        worker.stdin.close()
        worker.stdout.close()


@pytest.mark.parametrize("lacking", ["a pidfd", "a machine without GPU"])
def test_where_forks_cannot_live_none_is_tried(lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if lacking == "a pidfd":
        monkeypatch.delattr(os, "pidfd_open")
    else:
        monkeypatch.setattr(worker_forks, "GPU", tmp_path)
    with WorkerForks() as forks:
        assert not forks.coming
        assert forks.begin(settings(tmp_path)) is None
