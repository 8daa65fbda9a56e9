"""Batches of one service are read beside the event loop, one at a time.

A message of a megabyte takes tens of milliseconds to be parsed and checked. In the event loop, callers who send such
ones without a pause would leave no time to requests; in one thread of their own they get the turns of the interpreter
that a thread gets, however many they are. Nothing of a batch is unpacked before its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeVar

from contracts.thread_name import name_thread
from serving.batches.places import Places

MOST_WAITING = 64
Made = TypeVar("Made")


class BatchTurns:
    """Of one service of a process, in a `thread` of somebody else's, or their own; `within` is entered there for
    each of them. At most `most` wait, so that what they hold is bounded."""

    def __init__(
        self, most: int = MOST_WAITING, what: str = "wait to be read", thread: ThreadPoolExecutor | None = None,
        within: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._places = Places(most, f"batches {what}", "send this one again later, or elsewhere")
        self._thread, self._within = thread or ThreadPoolExecutor(1, "batches", name_thread), within

    @property
    def waiting(self) -> int:
        return self._places.taken

    async def take(self, who: str, work: Callable[[], Made]) -> Made:
        """What `work` returns, or raises, in its turn. Raises NoPlace."""
        self._places.take(who)
        done = asyncio.get_running_loop().run_in_executor(self._thread, partial(self._turn, work))
        done.add_done_callback(lambda _: self._places.leave(who))  # not before: who goes away leaves it in the line
        return await asyncio.shield(done)

    def _turn(self, work: Callable[[], Made]) -> Made:
        with self._within():
            return work()

    def close(self) -> None:
        """Waits for what is being read."""
        self._thread.shutdown(wait=True)
