"""A caller so light that it hardly takes part in what it measures: one method of gRPC, on bare HTTP/2 (RFC 9113).

A generator that shares the machine with its server takes its own cost from the capacity. `grpc.aio` spends about half a
millisecond of a core on a call, this a fraction of it: requests are ready bytes, and an answer's head is looked up by
its bytes. It keeps gRPC's rules where a server can tell: a connection that is asked to go (GOAWAY) is replaced and
calls that it has not taken are sent again, pings are answered, a call whose deadline passes is ended by a reset.
Heads are those of benchmarks/wire/wire_heads.py, and bodies are not compressed.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.wire.wire_heads import head, status, timeout

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, PRIORITY = 0x4, 0x8, 0x20
TABLE_SIZE, NO_PUSH, WINDOW, MOST_STREAMS = 1, 2, 4, 3  # settings
LARGEST = 2**31 - 1
CANCEL, REFUSED_STREAM = 8, 7  # why a stream was reset
Ended = Callable[[str, bytes], None]  # gRPC's status, the message of an answer


def framed(message: bytes) -> bytes:
    """As gRPC sends it: a flag for no compression, the length, the message."""
    return struct.pack(">BI", 0, len(message)) + message


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


@dataclass(slots=True, eq=False)
class _Call:
    message: bytes
    end: float
    ended: Ended
    answer: bytearray = field(default_factory=bytearray)
    timer: asyncio.TimerHandle | None = None


class Target(NamedTuple):
    """HOST:PORT and a method of it, /SERVICE/METHOD."""

    host: str
    port: int
    path: str


class WireCaller:
    """One connection at a time to a target. `call` from within the event loop."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._head = head(target.path, f"{target.host}:{target.port}")
        self._connection: _Connection | None = None
        self._waiting: list[_Call] = []
        self._connecting: asyncio.Task[None] | None = None

    def call(self, message: bytes, seconds: float, ended: Ended) -> None:
        """Sends a message; `ended` is called once, at the latest after so many seconds."""
        loop = asyncio.get_running_loop()
        one = _Call(framed(message), loop.time() + seconds, ended)
        one.timer = loop.call_later(seconds, self._late, one)
        self._send(one)

    async def ask(self, message: bytes, seconds: float) -> tuple[str, bytes]:
        """gRPC's status and the answer."""
        told: asyncio.Future[tuple[str, bytes]] = asyncio.get_running_loop().create_future()
        self.call(message, seconds, lambda code, answer: told.set_result((code, answer)))
        return await told

    async def connected(self) -> None:
        """Raises OSError where nobody listens."""
        loop = asyncio.get_running_loop()
        _, self._connection = await loop.create_connection(
            lambda: _Connection(self._head, self._send), self._target.host, self._target.port)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _send(self, one: _Call) -> None:
        connection = self._connection
        if connection is None or not connection.open:
            self._waiting.append(one)
            if self._connecting is None or self._connecting.done():
                self._connecting = asyncio.ensure_future(self._again())
            return
        connection.send(one)

    async def _again(self) -> None:
        try:
            await self.connected()
        except OSError:
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                _end(one, "UNAVAILABLE")
            return
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            self._send(one)

    def _late(self, one: _Call) -> None:
        if self._connection is not None:
            self._connection.cancel(one)
        _end(one, "DEADLINE_EXCEEDED")


def _end(one: _Call, code: str) -> None:
    """Tells it, once."""
    timer, one.timer = one.timer, None
    if timer is not None:
        timer.cancel()
        one.ended(code, bytes(one.answer[5:]))


class _Connection(asyncio.Protocol):
    """`again` takes calls that the server has not taken."""

    def __init__(self, head_: bytes, again: Callable[[_Call], None]) -> None:
        self._head, self._again = head_, again
        self._calls: dict[int, _Call] = {}
        self._queue: deque[_Call] = deque()
        self._next, self._most, self._rest, self._seen = 1, 0, b"", 0  # no streams before the server's settings
        self._blocks: dict[bytes, str | None] = {}
        self._transport: asyncio.Transport | None = None
        self.open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        settings = struct.pack(">HIHIHI", TABLE_SIZE, 0, NO_PUSH, 0, WINDOW, LARGEST)
        self._write(PREFACE + frame(SETTINGS, 0, 0, settings)
                    + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", LARGEST - 65_535)))

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        for one in [*self._calls.values(), *self._queue]:
            _end(one, "UNAVAILABLE")

    def close(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.close()

    def send(self, one: _Call) -> None:
        if len(self._calls) >= self._most:
            self._queue.append(one)
            return
        stream, self._next = self._next, self._next + 2
        self._calls[stream] = one
        left = one.end - asyncio.get_running_loop().time()
        self._write(frame(HEADERS, END_HEADERS, stream, self._head + timeout(left))
                    + frame(DATA, END_STREAM, stream, one.message))

    def cancel(self, one: _Call) -> None:
        """Its time is over."""
        if one in self._queue:
            self._queue.remove(one)
        for stream, other in self._calls.items():
            if other is one:
                self._write(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))
                self._done(stream)
                return

    def data_received(self, data: bytes) -> None:
        data, place = self._rest + data if self._rest else data, 0
        while len(data) - place >= 9:
            end = place + 9 + int.from_bytes(data[place : place + 3], "big")
            if end > len(data):
                break
            stream = int.from_bytes(data[place + 5 : place + 9], "big") & LARGEST
            self._take(data[place + 3], data[place + 4], stream, data[place + 9 : end])
            place = end
        self._rest = data[place:]

    def _take(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        if kind == DATA:
            self._data(flags, stream, body)
        elif kind == HEADERS:
            self._headers(flags, stream, body)
        elif kind == RST_STREAM:
            self._reset(stream, int.from_bytes(body, "big"))
        elif kind == SETTINGS and not flags & ACK:
            told = dict(struct.iter_unpack(">HI", body))
            self._most = told.get(MOST_STREAMS, self._most or LARGEST)
            self._write(frame(SETTINGS, ACK, 0, b""))
            self._flush()
        elif kind == PING and not flags & ACK:
            self._write(frame(PING, ACK, 0, body))
        elif kind == GOAWAY:
            self._go(int.from_bytes(body[:4], "big") & LARGEST)
        elif kind == CONTINUATION:
            raise ValueError("the server sends heads in several frames, which this caller does not read")

    def _data(self, flags: int, stream: int, body: bytes) -> None:
        self._seen += len(body)
        if self._seen > LARGEST // 2:
            self._write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", self._seen)))
            self._seen = 0
        if (one := self._calls.get(stream)) is not None:
            one.answer += body[1 : len(body) - body[0]] if flags & PADDED else body

    def _headers(self, flags: int, stream: int, body: bytes) -> None:
        one = self._calls.get(stream)
        if not flags & END_STREAM or one is None:
            return
        if flags & (PADDED | PRIORITY):
            raise ValueError("the server pads or weighs its heads, which this caller does not read")
        if body not in self._blocks:
            self._blocks[body] = status(body)
        self._done(stream)
        _end(one, self._blocks[body] or "UNKNOWN")

    def _reset(self, stream: int, why: int) -> None:
        one = self._calls.get(stream)
        if one is None:
            return
        self._done(stream)
        if why == REFUSED_STREAM:
            self._again(one)
        else:
            _end(one, "CANCELLED" if why == CANCEL else "UNAVAILABLE")

    def _go(self, last: int) -> None:
        """No more calls; those behind `last` have not been taken."""
        self.open = False
        untaken = [stream for stream in self._calls if stream > last]
        again = [*(self._calls.pop(stream) for stream in untaken), *self._queue]
        self._queue.clear()
        for one in again:
            self._again(one)
        if not self._calls:
            self.close()

    def _done(self, stream: int) -> None:
        self._calls.pop(stream, None)
        self._flush()
        if not self.open and not self._calls:
            self.close()

    def _flush(self) -> None:
        while self._queue and self.open and len(self._calls) < self._most:
            self.send(self._queue.popleft())

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
