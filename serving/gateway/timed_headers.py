"""HTTP connections on which a request has to come and its answer to be taken: uvicorn would wait for either without an
end.

    from the connection, or a request's first byte, to the end of its headers    `seconds`
    from an answer to the next request's first byte                              uvicorn's timeout_keep_alive, 5 s
    from when the kernel takes no more of an answer until it has all of it       `seconds`

    bytes beside the body: headers, trailers, what is around its pieces          MOST_BESIDE, else 431

What bodies may take is said by serving/gateway/body.py. httptools keeps headers and trailers of any size, a piece of
what comes at a time (256 KB); h11 has bounds of its own.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from serving.gateway import failures

Http: Any = AutoHTTPProtocol  # of two kinds, whichever is installed


MOST_BESIDE = 128 << 10


class TimedHeaders(Http):
    """Closes a connection whose headers are late or without an end, or that is read too slowly."""

    seconds = 10.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._beside = 0
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
        self._beside += len(data)
        super().data_received(data)
        self._expect()
        if self._beside > MOST_BESIDE and hasattr(Http, "on_body") and not self.transport.is_closing():
            self._refuse()

    def on_message_begin(self) -> None:
        self._beside = 0
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        self._beside -= len(body)
        super().on_body(body)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._stop()
        self._taken()

    def _refuse(self) -> None:
        if self.cycle is None or not self.cycle.response_started:
            why = f"headers and trailers have more than {MOST_BESIDE} bytes; send fewer"
            self.transport.write(failures.over_the_wire("RESOURCE_EXHAUSTED", why, 431))
        self.transport.close()

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
