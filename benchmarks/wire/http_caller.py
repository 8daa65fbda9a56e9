"""One request of HTTP/1.1 after the other on a blocking socket, the counterpart of benchmarks/wire/blocking_caller.py:
ready bytes out, and an answer's body by its length or its chunks (RFC 9112)."""

from __future__ import annotations

import re
import socket
from types import TracebackType

CHUNK, END = 65_536, b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:\s*chunked", re.IGNORECASE)
CLOSES = re.compile(rb"\r\nconnection:\s*close", re.IGNORECASE)


def post(target: str, path: str, body: bytes) -> bytes:
    """A request of JSON, as it goes over the wire."""
    return (f"POST {path} HTTP/1.1\r\nHost: {target}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


class HttpCaller:
    """Connects when it is first asked; HOST:PORT. A kept connection that the server has closed is replaced."""

    def __init__(self, target: str, seconds: float) -> None:
        host, _, port = target.rpartition(":")
        self._address, self._seconds = (host, int(port)), seconds
        self._socket: socket.socket | None = None

    def __enter__(self) -> HttpCaller:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def ask(self, request: bytes) -> tuple[int, bytes]:
        """The status, 0 where there is none, and the body."""
        kept = self._socket is not None
        try:
            return self._asked(request)
        except ConnectionError:
            self.close()
            if kept:
                return self.ask(request)
        except OSError:
            self.close()
        return 0, b""

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _asked(self, request: bytes) -> tuple[int, bytes]:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, self._seconds)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(request)
        data = b""
        while (end := data.find(END)) < 0:
            data += self._more()
        top, rest = data[:end], data[end + len(END):]
        body = self._chunks(rest) if CHUNKED.search(top) else self._long(top, rest)
        if CLOSES.search(top):
            self.close()
        return int(top.split(b" ", 2)[1]), body

    def _more(self) -> bytes:
        assert self._socket is not None
        if not (more := self._socket.recv(CHUNK)):
            raise ConnectionError("the server has closed the connection")
        return more

    def _long(self, top: bytes, body: bytes) -> bytes:
        """Raises ConnectionError where the head tells no length."""
        if (told := LENGTH.search(top)) is None:
            raise ConnectionError("an answer of unknown length")
        while len(body) < int(told[1]):
            body += self._more()
        return body

    def _chunks(self, rest: bytes) -> bytes:
        """Each is its length, in sixteens, and its bytes; one of 0 is the last."""
        body = b""
        while True:
            while (line := rest.find(b"\r\n")) < 0:
                rest += self._more()
            length, start = int(rest[:line].split(b";")[0], 16), line + 2
            while len(rest) < start + length + 2:
                rest += self._more()
            body += rest[start : start + length]
            rest = rest[start + length + 2:]
            if not length:
                return body
