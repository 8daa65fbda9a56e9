from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serving.events import stream_reader
from serving.events.stream_reader import StreamReader

SECONDS = 60.0


class Turns:
    """A stream that counts its turns, and fails at the first `failures` of them."""

    def __init__(self, failures: int = 0) -> None:
        self.taken, self.ended, self._failures = threading.Semaphore(0), threading.Event(), failures

    def turn(self, wait: float) -> int:
        self._failures -= 1
        self.taken.release()
        if self._failures >= 0:
            raise OSError("gone")
        return 0

    def opened(self) -> tuple[Any, Callable[[], None]]:
        return self, self.ended.set


def test_one_reads_and_the_other_goes_on_when_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_reader, "PAUSE_SECONDS", 0.01)
    first, second = Turns(), Turns()
    reader = StreamReader(first.opened, tmp_path)
    assert first.taken.acquire(timeout=SECONDS)
    waiting = StreamReader(second.opened, tmp_path)
    assert first.taken.acquire(timeout=SECONDS)
    assert not second.taken.acquire(blocking=False)
    reader.close()
    assert first.ended.is_set()
    assert second.taken.acquire(timeout=SECONDS)
    waiting.close()


def test_a_store_that_cannot_be_opened_is_opened_once_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_reader, "PAUSE_SECONDS", 0.01)
    turns, busy = Turns(), [sqlite3.OperationalError("database is locked")] * 2

    def opened() -> tuple[Any, Callable[[], None]]:
        if busy:
            raise busy.pop()
        return turns.opened()

    reader = StreamReader(opened, tmp_path)
    assert turns.taken.acquire(timeout=SECONDS)
    reader.close()
    assert turns.ended.is_set()


def test_a_failure_is_said_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stream_reader, "PAUSE_SECONDS", 0.01)
    caplog.set_level("INFO", logger="sluice.serving")
    turns = Turns(failures=3)
    reader = StreamReader(turns.opened, tmp_path)
    for _ in range(5):
        assert turns.taken.acquire(timeout=SECONDS)
    reader.close()
    assert [record.getMessage()[:40] for record in caplog.records] == [
        "the stream of events cannot be read (gon", "the stream of events is read again"]
