from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from contracts.behind_others import (
    LOADING_PRIORITY,
    RESTS,
    SHORTEST_PIECE,
    behind_others,
    give_way,
    leave_cores,
    what_others_leave,
)
from contracts.errors import SluiceError

WITHOUT_RIGHTS = """
import ctypes, os, resource, sys
from contracts.behind_others import LOADING_PRIORITY, behind_others, leave_cores, what_others_leave
leave_cores(60)
resource.setrlimit(resource.RLIMIT_NICE, (0, 0))
os.setgid(65534), os.setuid(65534)
import threading
own = lambda: (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
assert behind_others(own) == (os.SCHED_OTHER, LOADING_PRIORITY), behind_others(own)
"""


def classes() -> dict[int, int]:
    """Of this process's threads."""
    return {int(thread): os.sched_getscheduler(int(thread)) for thread in os.listdir("/proc/self/task")}


@pytest.fixture
def _leaving() -> Iterator[None]:
    leave_cores(60)
    try:
        if behind_others(lambda: os.sched_getscheduler(0)) != os.SCHED_IDLE:
            pytest.skip("threads cannot come back from SCHED_IDLE here")
        yield
    finally:
        leave_cores(0)


def test_loading_steps_back_and_the_process_does_not() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    found = behind_others(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
    assert found == max(before, LOADING_PRIORITY)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_what_loading_raises_is_told() -> None:
    def refuse() -> None:
        raise SluiceError("damaged")

    with pytest.raises(SluiceError, match="damaged"):
        behind_others(refuse)


@pytest.mark.usefixtures("_leaving")
def test_threads_that_loading_begins_have_a_share_when_it_is_over() -> None:
    ended, begun = threading.Event(), list[int]()

    def wait() -> None:
        begun.append(threading.get_native_id())
        ended.wait()

    thread = threading.Thread(target=wait)
    try:
        behind_others(thread.start)
        assert classes()[begun[0]] == os.SCHED_OTHER
    finally:
        ended.set()
        thread.join()


@pytest.mark.usefixtures("_leaving")
def test_loading_that_takes_long_has_a_share() -> None:
    leave_cores(0.5)
    waited = threading.Event()

    def work() -> Iterator[int]:
        yield os.sched_getscheduler(0)
        while os.sched_getscheduler(0) == os.SCHED_IDLE and not waited.wait(0.01):
            pass
        yield os.sched_getscheduler(0)

    assert behind_others(lambda: [*work()]) == [os.SCHED_IDLE, os.SCHED_OTHER]
    assert behind_others(lambda: os.sched_getscheduler(0)) == os.SCHED_OTHER


def test_where_nobody_may_come_back_loading_has_a_low_priority() -> None:
    if os.getuid():
        pytest.skip("rights can be given away by root alone")
    subprocess.run([sys.executable, "-c", WITHOUT_RIGHTS], check=True, timeout=60)


@pytest.mark.usefixtures("_leaving")
def test_a_thread_takes_what_others_leave_for_a_while_and_has_its_share_again() -> None:
    with what_others_leave(60):
        assert os.sched_getscheduler(0) == os.SCHED_IDLE
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    with what_others_leave(0.5):
        until = time.monotonic() + 60
        while os.sched_getscheduler(0) == os.SCHED_IDLE:
            assert time.monotonic() < until
            time.sleep(0.01)
    assert os.SCHED_IDLE not in classes().values()


def test_what_is_done_so_goes_on_where_the_system_gives_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    with what_others_leave(60):
        assert os.sched_getscheduler(0) == os.SCHED_OTHER


def worked(pieces: int) -> float:
    """Seconds of a core that these have taken, each some milliseconds, before it gave way."""
    begun = time.thread_time()
    for _ in range(pieces):
        end = time.thread_time() + 3 * SHORTEST_PIECE
        while time.thread_time() < end:
            pass
        give_way()
    return time.thread_time() - begun


def test_long_work_rests_between_its_pieces_while_it_is_to_take_what_others_leave() -> None:
    begun = time.monotonic()
    with what_others_leave(60):
        give_way()  # what was before counts for a piece at most
        spent = worked(10)
    assert time.monotonic() - begun > 0.9 * (1 + RESTS) * spent
    leave_cores(60)
    try:
        begun = time.monotonic()
        spent = behind_others(lambda: worked(10))
        assert time.monotonic() - begun > 0.9 * (1 + RESTS) * spent
    finally:
        leave_cores(0)


def test_what_has_its_share_does_not_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(seconds: float) -> None:
        raise AssertionError(f"rests for {seconds} s")

    monkeypatch.setattr(time, "sleep", none)
    worked(3)
    behind_others(lambda: worked(3))
