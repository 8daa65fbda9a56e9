"""Beside a server of gRPC itself."""

from __future__ import annotations

import asyncio
import struct
from collections import Counter

import pytest

from benchmarks.wire.wire_caller import Target, WireCaller, framed
from tests.benchmarks.wire.asked import asked_blocking, asked_in_a_loop
from tests.benchmarks.wire.echo_server import METHOD, echo

LONG = 200_000


BOTH = pytest.mark.parametrize("asked", [asked_in_a_loop, asked_blocking])


@BOTH
def test_answers_and_refusals_are_what_grpc_says(asked):
    with echo() as (handler, port):
        found = asked(port, b"one", b"refuse", b"", b"x" * LONG, seconds=7.0)
        assert 6.0 < handler.deadline <= 7.0
    assert found == [("OK", b"one"), ("RESOURCE_EXHAUSTED", b""), ("OK", b""), ("OK", b"x" * LONG)]


@BOTH
def test_a_method_that_is_not_there_and_a_server_that_is_not(asked):
    with echo() as (_, port):
        assert asked(port, b"one", path="/t.Echo/Sing") == [("UNIMPLEMENTED", b"")]
    assert asked(port, b"one", b"two") == [("UNAVAILABLE", b"")] * 2


def test_a_call_ends_at_its_deadline_and_the_server_is_told():
    with echo() as (handler, port):
        assert asked_in_a_loop(port, b"sleep", seconds=0.2) == [("DEADLINE_EXCEEDED", b"")]
        assert handler.left.wait(5)


def test_a_connection_that_is_asked_to_go_is_replaced_without_a_loss():
    with echo(("grpc.max_connection_age_ms", 50), ("grpc.max_connection_age_grace_ms", 2000)) as (_, port):
        found = asked_in_a_loop(port, *[b"one"] * 60, pause=0.005)
    assert Counter(code for code, _ in found) == {"OK": 60}


def test_more_calls_than_streams_wait_for_one():
    async def ask(port):
        caller = WireCaller(Target("127.0.0.1", port, METHOD))
        found = await asyncio.gather(*(caller.ask(str(number).encode(), 10) for number in range(50)))
        caller.close()
        return found

    with echo(("grpc.max_concurrent_streams", 2)) as (_, port):
        assert asyncio.run(ask(port)) == [("OK", str(number).encode()) for number in range(50)]


def test_a_message_looks_as_grpc_writes_it():
    assert framed(b"abc") == struct.pack(">BI", 0, 3) + b"abc"
