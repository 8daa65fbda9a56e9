"""Beside a server of gRPC itself."""

from __future__ import annotations

from collections import Counter

from benchmarks.wire.blocking_caller import BlockingCaller
from benchmarks.wire.wire_caller import Target
from tests.benchmarks.wire.asked import asked_blocking
from tests.benchmarks.wire.echo_server import METHOD, echo

LONG = 200_000


def test_after_a_call_that_ends_at_its_deadline_the_next_is_answered():
    with echo() as (handler, port), BlockingCaller(Target("127.0.0.1", port, METHOD)) as caller:
        assert caller.ask(b"sleep", 0.2) == ("DEADLINE_EXCEEDED", b"")
        assert handler.left.wait(5)
        assert caller.ask(b"one", 10) == ("OK", b"one")


def test_a_connection_that_is_asked_to_go_is_replaced_without_a_loss():
    with echo(("grpc.max_connection_age_ms", 50), ("grpc.max_connection_age_grace_ms", 2000)) as (_, port):
        found = asked_blocking(port, *[b"one"] * 60, pause=0.005)
    assert Counter(code for code, _ in found) == {"OK": 60}
