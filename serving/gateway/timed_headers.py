"""HTTP connections on which a request has to come: uvicorn would wait for its headers without an end.

    from the connection, or a request's first byte, to the end of its headers    `seconds`
    from an answer to the next request's first byte                              uvicorn's timeout_keep_alive, 5 s

What bodies may take is said by serving/gateway/body.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

Http: Any = AutoHTTPProtocol  # of two kinds, whichever is installed


class TimedHeaders(Http):
    """Closes a connection whose headers are late."""

    seconds = 10.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._late: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._stop()

    def _expect(self) -> None:
        """The clock runs from here, or on, until a request is under way."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(self.seconds, self.transport.abort)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
