"""Calls of a process that have not ended yet: so many of all callers, a quarter of them at most of one.

A call is open until its answer is with gRPC's transport, for which a caller that takes none lets it wait as long as it
likes: it answers gRPC's pings, so that it is not let go, and connects as often as it likes, so that a bound for each
connection is none.
"""

from __future__ import annotations

import grpc

from serving.access.caller_name import Who
from serving.batches.places import NoPlace, Places
from serving.request.after_call import after


class OpenCalls:
    """`most` of them; `who` names callers."""

    def __init__(self, most: int, who: Who) -> None:
        self._places = Places(most, "calls are open", "take their answers, or ask again later or elsewhere")
        self._who = who

    async def take(self, context: grpc.aio.ServicerContext) -> None:
        """Until the call has ended. Raises AbortError, RESOURCE_EXHAUSTED to the caller."""
        who = self._who(context)
        try:
            self._places.take(who)
        except NoPlace as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        after(context, lambda _: self._places.leave(who))
