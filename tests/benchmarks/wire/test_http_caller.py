"""Beside a server that writes what it is told to, byte by byte."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager

import pytest

from benchmarks.wire.http_caller import HttpCaller, post

OK = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def server(*connections):
    """Each is a list of answers, a list of pieces each; HOST:PORT, and the requests that came."""
    heard = []

    def serve(listening):
        for answers in connections:
            one, _ = listening.accept()
            with one:
                for pieces in answers:
                    heard.append(one.recv(65_536))
                    for piece in pieces:
                        one.sendall(piece)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", heard
        thread.join(10)


@pytest.mark.parametrize("pieces", [
    [OK + b"Content-Length: 5\r\n\r\nhello"],
    [OK + b"content-length:5\r\n", b"\r\nhe", b"llo"],
    [OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"],
    [OK + b"transfer-encoding: chunked\r\n\r\n2;a=b\r", b"\nhe\r\n3\r\nl", b"lo\r\n0\r\n", b"\r\n"],
])
def test_bodies_are_read_to_their_end_whatever_the_pieces(pieces):
    with server([pieces, pieces]) as (target, heard), HttpCaller(target, 10) as caller:
        request = post(target, "/score", b"{}")
        assert [caller.ask(request) for _ in range(2)] == [(200, b"hello")] * 2
    assert heard == [request] * 2
    assert request.endswith(b"Content-Length: 2\r\n\r\n{}")


def test_a_kept_connection_that_was_closed_is_replaced():
    short = [OK + b"Content-Length: 0\r\n\r\n"]
    gone = [b"HTTP/1.1 404 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"]
    with server([short], [gone], [short]) as (target, _), HttpCaller(target, 10) as caller:
        assert [caller.ask(post(target, "/", b""))[0] for _ in range(3)] == [200, 404, 200]


def test_who_does_not_answer_has_status_zero():
    with server([[]]) as (target, _), HttpCaller(target, 10) as caller:
        assert caller.ask(post(target, "/", b"")) == (0, b"")
    with HttpCaller(target, 10) as caller:
        assert caller.ask(post(target, "/", b"")) == (0, b"")
