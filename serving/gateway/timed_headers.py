"""HTTP connections on which a request has to come and its answer to be taken: uvicorn would wait for either without an
end.

    from the connection, or a request's first byte, to the end of its headers    `seconds`
    from an answer to the next request's first byte                              uvicorn's timeout_keep_alive, 5 s
    from when the kernel takes no more of an answer until it has all of it       `seconds`

What bodies may take is said by serving/gateway/body.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

Http: Any = AutoHTTPProtocol  # of two kinds, whichever is installed


class TimedHeaders(Http):
    """Closes a connection whose headers are late, or that is read too slowly."""

    seconds = 10.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._late: asyncio.TimerHandle | None = None
        self._untaken: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # `pause_writing` once there is anything that the kernel has not taken
        self._expect()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._untaken = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._taken()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._stop()
        self._taken()

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

    def _taken(self) -> None:
        if self._untaken is not None:
            self._untaken.cancel()
            self._untaken = None
