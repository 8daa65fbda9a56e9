"""Work is done by the thread that has rested for the shortest time; nobody waits for one that hangs."""

from __future__ import annotations

import gc
import threading
from queue import SimpleQueue

import pytest

from serving.request.work_threads import WorkThread, WorkThreads

WAIT = 20.0


def done_by(threads: WorkThreads) -> WorkThread:
    """The thread that takes a piece of work, and rests again."""
    told: SimpleQueue[WorkThread] = SimpleQueue()

    def work(thread: WorkThread) -> None:
        threads.rest(thread)
        assert thread is threading.current_thread()
        told.put(thread)

    threads.begin(work)
    return told.get(timeout=WAIT)


def test_one_thread_does_what_comes_one_after_the_other() -> None:
    threads = WorkThreads("funnel")
    assert {done_by(threads).name for _ in range(50)} == {"funnel_0"}
    threads.close()


def test_another_one_begins_while_one_hangs_and_who_rested_last_is_first() -> None:
    threads, hangs, ended = WorkThreads("funnel"), threading.Event(), threading.Event()

    def hang(thread: WorkThread) -> None:
        hangs.wait(WAIT)
        threads.rest(thread)
        ended.set()

    threads.begin(hang)
    assert {done_by(threads).name for _ in range(5)} == {"funnel_1"}
    hangs.set()
    assert ended.wait(WAIT)
    assert {done_by(threads).name for _ in range(5)} == {"funnel_0"}
    threads.close()


def test_work_that_has_begun_is_waited_for() -> None:
    threads, begun, going, ended = WorkThreads("funnel"), threading.Event(), threading.Event(), list[bool]()

    def work(thread: WorkThread) -> None:
        begun.set()
        going.wait(WAIT)
        ended.append(True)

    threads.begin(work)
    assert begun.wait(WAIT)
    closing = threading.Thread(target=threads.close)
    closing.start()
    closing.join(0.1)
    assert closing.is_alive()
    going.set()
    closing.join(WAIT)
    assert ended


def test_a_thread_that_could_not_start_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = WorkThreads("funnel")
    with monkeypatch.context() as patch:
        patch.setattr(WorkThread, "start", no_thread)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            threads.begin(threads.rest)
    assert done_by(threads).name == "funnel_0"
    threads.close()


def no_thread(thread: WorkThread) -> None:
    raise RuntimeError("can't start new thread")


def test_threads_of_nobody_end() -> None:
    threads = WorkThreads("funnel")
    one = done_by(threads)
    del threads
    gc.collect()
    one.join(WAIT)
    assert not one.is_alive()
