"""Beside a server of gRPC itself."""

from __future__ import annotations

import time
from collections import Counter

from benchmarks.wire.blocking_caller import BlockingCaller
from benchmarks.wire.wire_caller import Target
from tests.benchmarks.wire.echo_server import METHOD, echo

LONG = 200_000


def asked(port, *messages, seconds=10.0, path=METHOD, pause=0.0):
    """One after the other, over one caller."""
    with BlockingCaller(Target("127.0.0.1", port, path)) as caller:
        found = []
        for message in messages:
            found.append(caller.ask(message, seconds))
            time.sleep(pause)
    return found


def test_answers_and_refusals_are_what_grpc_says():
    with echo() as (handler, port):
        found = asked(port, b"one", b"refuse", b"", b"x" * LONG, seconds=7.0)
        assert 6.0 < handler.deadline <= 7.0
    assert found == [("OK", b"one"), ("RESOURCE_EXHAUSTED", b""), ("OK", b""), ("OK", b"x" * LONG)]


def test_a_method_that_is_not_there_and_a_server_that_is_not():
    with echo() as (_, port):
        assert asked(port, b"one", path="/t.Echo/Sing") == [("UNIMPLEMENTED", b"")]
    assert asked(port, b"one", b"two") == [("UNAVAILABLE", b"")] * 2


def test_after_a_call_that_ends_at_its_deadline_the_next_is_answered():
    with echo() as (handler, port), BlockingCaller(Target("127.0.0.1", port, METHOD)) as caller:
        assert caller.ask(b"sleep", 0.2) == ("DEADLINE_EXCEEDED", b"")
        assert handler.left.wait(5)
        assert caller.ask(b"one", 10) == ("OK", b"one")


def test_a_connection_that_is_asked_to_go_is_replaced_without_a_loss():
    with echo(("grpc.max_connection_age_ms", 50), ("grpc.max_connection_age_grace_ms", 2000)) as (_, port):
        found = asked(port, *[b"one"] * 60, pause=0.005)
    assert Counter(code for code, _ in found) == {"OK": 60}
