"""Connections of a real server over sockets: who sends no request or reads no answer is let go, who waits for one is
not."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from serving.gateway.timed_headers import TimedHeaders

SECONDS = 0.1
LARGE = 16 << 20  # bytes, more than the kernel takes at once
REQUEST = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Impatient(TimedHeaders):
    seconds = SECONDS


@pytest.fixture(scope="module")
def server() -> Iterator[uvicorn.Server]:
    async def at_once(request: Request) -> PlainTextResponse:
        return PlainTextResponse("now")

    async def late(request: Request) -> PlainTextResponse:
        await asyncio.sleep(3 * SECONDS)
        return PlainTextResponse("late")

    async def large(request: Request) -> PlainTextResponse:
        return PlainTextResponse("x" * LARGE)

    app = Starlette(routes=[Route("/now", at_once), Route("/late", late), Route("/large", large)])
    server = uvicorn.Server(uvicorn.Config(app, port=0, http=Impatient, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield server
    server.should_exit = True
    thread.join(20)


@pytest.fixture
def port(server: uvicorn.Server) -> int:
    found: int = server.servers[0].sockets[0].getsockname()[1]
    return found


def heard(port: int, *sent: bytes) -> bytes:
    """All that comes after each part is sent, until the server closes."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        found = b""
        for number, part in enumerate(sent):
            connection.sendall(part)
            while number + 1 < len(sent) and b"now" not in found:
                found += connection.recv(4096)
        while more := connection_read(connection):
            found += more
    return found


def connection_read(connection: socket.socket) -> bytes:
    try:
        return connection.recv(4096)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"\r\n"])
def test_who_sends_no_whole_headers_is_let_go(port: int, sent: bytes) -> None:
    assert heard(port, sent) == b""


def test_headers_of_a_second_request_are_waited_for_as_long(port: int) -> None:
    assert heard(port, REQUEST % b"now", b"GET /now HTTP/1.1\r\n").count(b"now") == 1


def test_an_answer_is_waited_for(port: int) -> None:
    assert heard(port, REQUEST % b"late").endswith(b"late")


def connected(server: uvicorn.Server, count: int) -> bool:
    """As soon as there are so many connections."""
    end = time.monotonic() + 20
    while len(server.server_state.connections) != count and time.monotonic() < end:
        time.sleep(0.005)
    return len(server.server_state.connections) == count


def test_who_takes_nothing_of_an_answer_is_let_go(server: uvicorn.Server, port: int) -> None:
    """Neither its connection nor what it was to read is held any longer."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(REQUEST % b"large")
        assert connection.recv(1)
        assert connected(server, 0)
