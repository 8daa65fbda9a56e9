"""Batches of changes and of events are read beside the event loop, one at a time.

A message of a megabyte takes tens of milliseconds to be parsed and checked. In the event loop, callers who send such
ones without a pause would leave no time to requests; in one thread of their own they get the turns of the interpreter
that a thread gets, however many they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from contracts.errors import SluiceError
from contracts.thread_name import name_thread

MOST_WAITING = 64
Made = TypeVar("Made")


class TooManyBatches(SluiceError):
    """As many wait as may."""


class BatchTurns:
    """Of one process. At most `most` wait, so that what they hold is bounded."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._most, self.waiting = most, 0
        self._thread = ThreadPoolExecutor(1, "batches", name_thread)

    async def take(self, work: Callable[[], Made]) -> Made:
        """What `work` returns, or raises, in its turn. Raises TooManyBatches."""
        if self.waiting >= self._most:
            raise TooManyBatches(f"{self.waiting} batches of changes and events wait to be read; send this one again "
                                 "later, or elsewhere")
        done = asyncio.get_running_loop().run_in_executor(self._thread, work)
        self.waiting += 1
        done.add_done_callback(self._ended)
        return await asyncio.shield(done)

    def _ended(self, done: asyncio.Future[Any]) -> None:
        """Not before: who goes away leaves the batch in the line."""
        self.waiting -= 1

    def close(self) -> None:
        self._thread.shutdown(wait=True)
