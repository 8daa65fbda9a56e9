"""The thread that reads the stream of events, in one process of the host: the others wait for its end."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable
from pathlib import Path

from contracts.shown import short
from contracts.thread_name import name_thread
from serving.batches.trouble import Trouble
from serving.events.event_stream import EventStream

LOCK = ".stream"
WAIT_SECONDS = 0.5  # for events, and for a word to stop
PAUSE_SECONDS = 1.0  # after a failure, and between looks whether it is this process's turn


class StreamReader:
    """`opened` is called in the thread once it is its turn, and returns the stream and what ends it."""

    def __init__(self, opened: Callable[[], tuple[EventStream, Callable[[], None]]], folder: Path) -> None:
        self._opened, self._path, self._stop = opened, folder / LOCK, threading.Event()
        self._trouble = Trouble("the stream of events cannot be read (%s); it is tried again, with what it holds then",
                                "the stream of events is read again")
        self._thread = threading.Thread(target=self._wait_for_turn, name="stream", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """What was read is recorded, or read again by the next."""
        self._stop.set()
        self._thread.join()

    def _wait_for_turn(self) -> None:
        name_thread()
        with self._path.open("w") as lock:  # released when the process ends, whatever ends it
            while not self._stop.is_set():
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self._stop.wait(PAUSE_SECONDS)
                else:
                    self._read_or_wait()

    def _read_or_wait(self) -> None:
        try:
            stream, end = self._opened()
        except Exception as error:  # another writer's turn, a disk that is full
            self._failed(error)
        else:
            self._read(stream, end)

    def _read(self, stream: EventStream, end: Callable[[], None]) -> None:
        try:
            while not self._stop.is_set():
                try:
                    stream.turn(WAIT_SECONDS)
                except Exception as error:  # whatever it was, the same events are read again
                    self._failed(error)
                else:
                    self._trouble.say("")
        finally:
            end()

    def _failed(self, error: Exception) -> None:
        self._trouble.say(short(str(error)) or type(error).__name__)
        self._stop.wait(PAUSE_SECONDS)

