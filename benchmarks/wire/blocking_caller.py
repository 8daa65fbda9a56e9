"""One call of gRPC after the other on a blocking socket: the lightest caller there is, for what one caller waits.

Between two calls it neither sleeps nor wakes an event loop, and requests are ready bytes, so that what it measures is
the server's time and the kernel's. Frames are those of benchmarks/wire/wire_caller.py. A connection that is asked to go
(GOAWAY) is replaced before the next call; a call that the server has not taken is sent once more.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType

from benchmarks.wire.wire_caller import (
    ACK,
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    LARGEST,
    NO_PUSH,
    PADDED,
    PING,
    PREFACE,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    TABLE_SIZE,
    WINDOW,
    WINDOW_UPDATE,
    Target,
    frame,
    framed,
)
from benchmarks.wire.wire_heads import head, status, timeout

CHUNK, ATTEMPTS = 65_536, 2
Answer = tuple[str, bytes]  # gRPC's status, the message


class BlockingCaller:
    """Connects when it is first asked."""

    def __init__(self, target: Target) -> None:
        self._target, self._head = target, head(target.path, f"{target.host}:{target.port}")
        self._blocks: dict[bytes, str] = {}
        self._socket: socket.socket | None = None
        self._next, self._seen, self._rest, self._going = 1, 0, b"", False

    def __enter__(self) -> BlockingCaller:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def ask(self, message: bytes, seconds: float) -> Answer:
        """gRPC's status and the answer."""
        try:
            for _ in range(ATTEMPTS):
                if (answer := self._asked(message, seconds)) is not None:
                    return answer
        except TimeoutError:
            self.close()
            return "DEADLINE_EXCEEDED", b""
        except OSError:
            self.close()
        return "UNAVAILABLE", b""

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _asked(self, message: bytes, seconds: float) -> Answer | None:
        """None where the server has not taken the call."""
        connection = self._socket if self._socket is not None and not self._going else self._connected()
        connection.settimeout(seconds)
        stream, self._next = self._next, self._next + 2
        connection.sendall(frame(HEADERS, END_HEADERS, stream, self._head + timeout(seconds))
                           + frame(DATA, END_STREAM, stream, framed(message)))
        return self._answer(connection, stream)

    def _connected(self) -> socket.socket:
        self.close()
        self._socket = connection = socket.create_connection((self._target.host, self._target.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._next, self._seen, self._rest, self._going = 1, 0, b"", False
        settings = struct.pack(">HIHIHI", TABLE_SIZE, 0, NO_PUSH, 0, WINDOW, LARGEST)
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0, settings)
                           + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", LARGEST - 65_535)))
        return connection

    def _answer(self, connection: socket.socket, stream: int) -> Answer | None:
        answer = bytearray()
        while True:
            kind, flags, of, body = self._frame(connection)
            if kind == DATA and of == stream:
                answer += body[1 : len(body) - body[0]] if flags & PADDED else body
                self._widen(connection, len(body))
            elif kind == HEADERS and of == stream and flags & END_STREAM:
                return self._status(body), bytes(answer[5:])
            elif kind == RST_STREAM and of == stream:
                why = int.from_bytes(body, "big")
                return None if why == REFUSED_STREAM else ("CANCELLED" if why == CANCEL else "UNAVAILABLE", b"")
            elif kind == GOAWAY:
                self._going = True
                if stream > int.from_bytes(body[:4], "big") & LARGEST:
                    return None
            elif kind in (SETTINGS, PING) and not flags & ACK:
                connection.sendall(frame(kind, ACK, 0, body if kind == PING else b""))

    def _frame(self, connection: socket.socket) -> tuple[int, int, int, bytes]:
        """Kind, flags, stream, body of the next one. Raises ConnectionError where the server has gone."""
        data = self._rest
        while len(data) < 9 or len(data) < 9 + int.from_bytes(data[:3], "big"):
            more = connection.recv(CHUNK)
            if not more:
                raise ConnectionError("the server has closed the connection")
            data += more
        end = 9 + int.from_bytes(data[:3], "big")
        self._rest = data[end:]
        return data[3], data[4], int.from_bytes(data[5:9], "big") & LARGEST, data[9:end]

    def _widen(self, connection: socket.socket, more: int) -> None:
        self._seen += more
        if self._seen > LARGEST // 2:
            connection.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", self._seen)))
            self._seen = 0

    def _status(self, block: bytes) -> str:
        """Blocks repeat, so that each is read once."""
        if block not in self._blocks:
            self._blocks[block] = status(block) or "UNKNOWN"
        return self._blocks[block]
