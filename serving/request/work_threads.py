"""Threads that take one piece of work each, the one that has rested for the shortest time first.

What it has lately touched is still in its core's caches, and its memory in an arena of its own; a pool in which any
thread takes the next piece goes round all of them.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from queue import SimpleQueue

from contracts.thread_name import name_thread


class WorkThread(threading.Thread):
    """Does what it is handed until that is None. Ends with the process, whatever it is at."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.handed: SimpleQueue[Callable[[WorkThread], None] | None] = SimpleQueue()

    def run(self) -> None:
        name_thread()
        while (work := self.handed.get()) is not None:
            work(self)
            del work  # nor what it holds, while the thread waits for more


class WorkThreads:
    """Called NAME_0, NAME_1 and so on. `begin` and `rest` are not to be called at the same time."""

    def __init__(self, name: str) -> None:
        self._name, self._all, self._resting = name, list[WorkThread](), list[WorkThread]()
        self._end = weakref.finalize(self, _dismiss, self._all)

    def begin(self, work: Callable[[WorkThread], None]) -> None:
        """By a thread that rests, or a new one. The work says when it is as good as done, by `rest`. Raises
        RuntimeError where the system gives no thread."""
        thread = self._resting.pop() if self._resting else self._started()
        thread.handed.put(work)

    def rest(self, thread: WorkThread) -> None:
        """It may be handed more: it has at most to return."""
        self._resting.append(thread)

    def close(self, seconds: float | None = None) -> None:
        """Waits for the work that has begun, for so long at most: what hangs ends with the process."""
        self._end()
        end = None if seconds is None else time.monotonic() + seconds
        for thread in self._all:
            thread.join(None if end is None else max(end - time.monotonic(), 0.0))

    def _started(self) -> WorkThread:
        thread = WorkThread(f"{self._name}_{len(self._all)}")
        thread.start()
        self._all.append(thread)
        return thread


def _dismiss(threads: list[WorkThread]) -> None:
    for thread in threads:
        thread.handed.put(None)
