"""Connections of a real server over sockets: who sends no request or reads no answer is let go, who waits for one is
not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from serving.gateway.timed_headers import MOST_BESIDE, TimedHeaders
from tests.serving.gateway.running_http import port_of, serving

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

    with serving(Starlette(routes=[Route("/now", at_once), Route("/late", late), Route("/large", large)]),
                 Impatient) as server:
        yield server


@pytest.fixture(scope="module")
def patient() -> Iterator[int]:
    """The port of one that waits for ten seconds, and reads bodies."""
    async def now(request: Request) -> PlainTextResponse:
        return PlainTextResponse("now")

    async def body(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"got {len(await request.body())}")

    routes = [Route("/now", now), Route("/body", body, methods=["POST"])]
    with serving(Starlette(routes=routes), TimedHeaders) as server:
        yield port_of(server)


@pytest.fixture
def port(server: uvicorn.Server) -> int:
    return port_of(server)


def heard(port: int, *sent: bytes) -> bytes:
    """All that comes after each part is sent, until the server closes."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        found = b""
        for number, part in enumerate(sent):
            connection.sendall(part)
            if number + 1 < len(sent):
                found += read_to(connection, b"now")
        while more := connection_read(connection):
            found += more
    return found


def read_to(connection: socket.socket, end: bytes) -> bytes:
    """Fails where the server closes before."""
    found = b""
    while not found.endswith(end):
        more = connection.recv(4096)
        assert more, found
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


HEAD = b"GET /now HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"POST /body HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(("begun", "piece"), [
    (HEAD + b"x: ", b"y" * 1000), (HEAD, b"x: y\r\n" * 200), (CHUNKED + b"2\r\n{}\r\n0\r\n", b"x: y\r\n" * 200),
    (CHUNKED, b"1\r\n \r\n" * 200), (CHUNKED + b"1;", b"y" * 1000)])
def test_headers_and_trailers_without_an_end_are_refused(patient: int, begun: bytes, piece: bytes) -> None:
    """Long before their time is over; what else is sent is not read."""
    with socket.create_connection(("127.0.0.1", patient), 20) as connection:
        connection.sendall(begun)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 100 * MOST_BESIDE:
                connection.sendall(piece)
                sent += len(piece)
        said = connection_read(connection)
    assert sent < 100 * MOST_BESIDE
    assert not said or said.startswith(b"HTTP/1.1 431 ")  # what has not been read makes the kernel drop what was said


def test_bodies_are_no_headers(patient: int) -> None:
    """However large, and in however many requests on one connection."""
    large = b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (8 * MOST_BESIDE)
    with socket.create_connection(("127.0.0.1", patient), 20) as connection:
        for _ in range(3):
            connection.sendall(large + b"x" * (8 * MOST_BESIDE))
            read_to(connection, b"got %d" % (8 * MOST_BESIDE))
        for _ in range(3 * MOST_BESIDE // len(REQUEST % b"now")):
            connection.sendall(REQUEST % b"now")
            read_to(connection, b"now")


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
