"""A caller that sends requests and never takes an answer: HTTP/2 by hand, as no client library lets one be."""

from __future__ import annotations

import socket
import struct

from serving.proto import sluice_pb2 as pb

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS = 1, 4
INITIAL_WINDOW_SIZE = 4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name: str, value: str | bytes) -> bytes:
    """A header as HPACK writes one that it neither knows nor keeps."""
    held = value.encode() if isinstance(value, str) else value
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(held)]) + held


class SilentCaller:
    """Says that nothing may be sent to it, and asks: `with SilentCaller(port) as caller: caller.ask("u1", 300)`."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what is asked is asked now
        window = struct.pack(">HI", INITIAL_WINDOW_SIZE, 0)
        self._socket.sendall(PREFACE + frame(SETTINGS, 0, 0, window))
        self._stream = 1

    def __enter__(self) -> SilentCaller:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, user: str, times: int, method: str = "sluice.v1.Ranking/Rank", **more: str | bytes) -> None:
        """`more` headers."""
        message = pb.RankRequest(user_id=user).SerializeToString()
        body = struct.pack(">BI", 0, len(message)) + message
        for _ in range(times):
            self.begin(method, **more)
            self._socket.sendall(frame(DATA, END_STREAM, self._stream - 2, body))

    def begin(self, method: str = "sluice.v1.Ranking/Rank", **more: str | bytes) -> None:
        """A call of which there are headers alone."""
        fields: dict[str, str | bytes] = {
            ":method": "POST", ":scheme": "http", ":path": f"/{method}", ":authority": "localhost", "te": "trailers",
            "content-type": "application/grpc", **more}
        headers = b"".join(literal(name, value) for name, value in fields.items())
        self._socket.sendall(frame(HEADERS, END_HEADERS, self._stream, headers))
        self._stream += 2

    def answered(self, times: int) -> None:
        """Once so many answers have begun: their headers come, what they hold is not taken."""
        while times:
            size, kind = struct.unpack(">IB", b"\0" + self._read(4))
            self._read(5 + size)
            times -= kind == HEADERS

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = self._socket.recv(size - len(found))
            assert piece, "the server has closed the connection"
            found += piece
        return found

    def is_let_go(self, seconds: float) -> bool:
        """Does the server close the connection in time?"""
        self._socket.settimeout(seconds)
        try:
            while self._socket.recv(65_536):
                pass
        except TimeoutError:
            return False
        except ConnectionResetError:
            pass
        return True
