from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from serving.changing_index.reading_lock import ReadingLock

SECONDS = 60


class Told(threading.Condition):
    """Says when somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.set()
        return super().wait(timeout)


def test_many_read_at_once_and_do_not_wait_for_one_who_waits_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    met, written, condition = threading.Barrier(2), threading.Event(), Told()
    with monkeypatch.context() as patch:
        patch.setattr(threading, "Condition", lambda: condition)
        lock = ReadingLock()

    def write() -> None:
        with lock.writing():
            written.set()

    def read() -> None:
        with lock.reading():
            met.wait(SECONDS)

    with ThreadPoolExecutor(3) as pool:
        with lock.reading():
            writer = pool.submit(write)
            assert condition.waits.wait(SECONDS)
            readers = [pool.submit(read) for _ in range(2)]
            for reader in readers:
                reader.result(SECONDS)
            assert not written.is_set()
        writer.result(SECONDS)
    assert written.is_set()


def test_nobody_reads_while_one_writes() -> None:
    lock, read, begun = ReadingLock(), threading.Event(), threading.Event()

    def reading() -> None:
        begun.set()
        with lock.reading():
            read.set()

    with ThreadPoolExecutor(1) as pool:
        with lock.writing():
            reader = pool.submit(reading)
            assert begun.wait(SECONDS)
            assert not read.wait(0.05)
        reader.result(SECONDS)
    assert read.is_set()


def test_what_fails_lets_go() -> None:
    lock = ReadingLock()
    for side in (lock.reading, lock.writing):
        with pytest.raises(OSError, match="disk"), side():
            raise OSError("disk")
    with lock.writing():
        pass
