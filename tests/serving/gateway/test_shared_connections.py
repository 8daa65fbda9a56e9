"""Connections of a real server over sockets, from machines of their own: Linux has all of 127.0.0.0/8 on loopback."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from serving.gateway.shared_connections import SharedConnections, connections
from tests.serving.gateway.running_http import port_of, serving

MOST = 8
EACH = MOST // 4
REQUEST = b"GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def port() -> Iterator[int]:
    async def at_once(request: Request) -> PlainTextResponse:
        return PlainTextResponse("now")

    http = partial(SharedConnections, places=connections(MOST))
    with serving(Starlette(routes=[Route("/now", at_once)]), http) as server:
        yield port_of(server)


def connected(port: int, machine: int) -> socket.socket:
    """From 127.0.0.MACHINE."""
    return socket.create_connection(("127.0.0.1", port), 20, (f"127.0.0.{machine}", 0))


def held(port: int, machine: int) -> socket.socket:
    """One that has been answered, and is kept; the server hears a little later that others have gone."""
    for _ in range(1000):
        connection = connected(port, machine)
        connection.sendall(REQUEST)
        if b"200 OK" in received(connection):
            return connection
        connection.close()
    raise AssertionError("no place was free")


def received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(4096)
    except ConnectionResetError:
        return b""


def refused(port: int, machine: int) -> str:
    """What is said to one that asks nothing, until the server closes."""
    with connected(port, machine) as connection:
        said = b""
        while more := connection.recv(4096):
            said += more
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert f"content-length: {len(body)}".encode() in head
    message: str = json.loads(body)["error"]["message"]
    return message


def test_one_machine_has_a_quarter_of_the_connections(port: int) -> None:
    with ExitStack() as kept:
        for _ in range(EACH):
            kept.enter_context(held(port, 1))
        for _ in range(3):
            assert "2 connections are open of this caller alone" in refused(port, 1)
        kept.enter_context(held(port, 2))


def test_all_machines_have_no_more_than_all(port: int) -> None:
    with ExitStack() as kept:
        for number in range(MOST):
            kept.enter_context(held(port, 1 + number))
        assert "8 connections are open, as many as may" in refused(port, 9)


def test_a_place_is_given_back(port: int) -> None:
    for _ in range(3):
        with held(port, 1), held(port, 1):
            assert "of this caller alone" in refused(port, 1)
