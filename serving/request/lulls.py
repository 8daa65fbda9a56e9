"""Moments in which a worker computes no request: for work beside requests that can wait for one.

A request that computes beside another thread of Python gives the interpreter away whenever it calls a library, some
hundred times, and is given it back when the other thread's turn is over, up to half a millisecond later each time.
Work that lies between requests takes nothing from them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SETTLED_SECONDS = 0.001  # the event loop writes the answer of the request that was computed last


class Lulls:
    """One thread at a time says when a lull `begins` and `ends`; any waits for one."""

    def __init__(self) -> None:
        self._lull, self._settled, self._turn = threading.Event(), 0.0, threading.Lock()
        self._lull.set()

    def begins(self) -> None:
        self._settled = time.monotonic() + SETTLED_SECONDS
        self._lull.set()

    def ends(self) -> None:
        self._lull.clear()

    def wait(self, seconds: float) -> bool:
        """Until there is one, at most so long; whether there is."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._lull.wait(left):
            unsettled = self._settled - time.monotonic()
            if unsettled <= 0:
                return True
            time.sleep(min(left, unsettled))
        return False

    @contextmanager
    def turn(self, seconds: float) -> Iterator[bool]:
        """As `wait`. Until it ends no other turn begins, unless that has waited for so long: a lull wakes one of the
        threads that wait for one, and they do not meet in the next request."""
        end = time.monotonic() + seconds
        alone = self._turn.acquire(timeout=max(seconds, 0.0))
        try:
            yield self.wait(end - time.monotonic())
        finally:
            if alone:
                self._turn.release()
