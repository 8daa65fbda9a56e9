"""HTTP connections that machines share: so many for all, a quarter of them at most for one.

Who has its part, or comes when all are taken, is answered 503 without being asked what it wants, and let go: such a
connection holds nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

from serving.access.caller_name import machine
from serving.batches.places import NoPlace, Places
from serving.gateway import failures
from serving.gateway.timed_headers import TimedHeaders

MOST = 1000  # so that what their bodies hold is bounded


def connections(most: int = MOST) -> Places:
    """Of one process."""
    return Places(most, "connections are open", "close some, or try again later or elsewhere")


class SharedConnections(TimedHeaders):
    """Takes one of the `places` while it is open."""

    def __init__(self, *given: Any, places: Places, **named: Any) -> None:
        super().__init__(*given, **named)
        self._places, self._machine, self._let_in = places, "", False

    def connection_made(self, transport: asyncio.Transport) -> None:
        peer = transport.get_extra_info("peername")
        self._machine = machine(str(peer[0])) if isinstance(peer, tuple) else ""
        try:
            self._places.take(self._machine)
        except NoPlace as error:
            transport.write(failures.over_the_wire("RESOURCE_EXHAUSTED", str(error), 503))
            transport.close()
            return
        self._let_in = True
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._let_in:
            super().data_received(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._let_in:
            self._places.leave(self._machine)
            super().connection_lost(error)
