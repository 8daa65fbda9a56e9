"""Large requests of a process: read beside the event loop, which their ten thousands of values would hold up, and
bounded in bytes until they are answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import grpc

from serving.access.caller_name import Who
from serving.batches.batch_turns import BatchTurns
from serving.batches.places import Places
from serving.request.after_call import after

LARGE_BYTES, MOST_READ = 64 << 10, 32
MOST_HELD = 16  # times the largest request: what large ones hold that are not answered yet; unpacked it is far more
Read = TypeVar("Read")


class LargeRequests:
    """`largest` bytes may one have; `who` names callers, of whom each has its share."""

    def __init__(self, largest: int, who: Who) -> None:
        self._turns = BatchTurns(MOST_READ, "as large wait to be read")
        self._held = Places(MOST_HELD * largest, "bytes of large requests wait for their answers",
                            "send this one again later, or elsewhere")
        self._who = who

    @property
    def waiting(self) -> int:
        """Those that are being read, or wait for it."""
        return self._turns.waiting

    def hold(self, size: int, context: grpc.aio.ServicerContext) -> None:
        """Until the call ends: what waits for the funnel is as large as what waits to be read. Raises NoPlace."""
        who = self._who(context)
        self._held.take(who, size)
        after(context, lambda _: self._held.leave(who, size))

    async def read(self, work: Callable[[], Read], context: grpc.aio.ServicerContext) -> Read:
        """What `work` makes of a request, when its turn comes. Raises NoPlace, and what it raises."""
        return await self._turns.take(self._who(context), work)

    def close(self) -> None:
        """Waits for what is being read."""
        self._turns.close()
