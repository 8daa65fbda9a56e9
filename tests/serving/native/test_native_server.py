"""Laws of a gRPC server, asked of `grpc.aio` and of the native one alike; then what only the native one has."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator

import grpc
import pytest

from serving.native.grpc_server import GrpcServer
from serving.native.native_library import library
from serving.native.native_server import NativeServer, RankingGate
from tests.serving.native.echo_service import SERVICE, TRAILING, Running, method, running
from tests.serving.read_log import until

pytestmark = pytest.mark.skipif(library() is None, reason="gRPC's C++ library is not on this machine")
GATED = ("Say", "Hold", "Refuse", "Unknown")
LIMIT = [("grpc.max_receive_message_length", 1000)]


@pytest.fixture(params=[grpc.aio.server, NativeServer], ids=["aio", "native"])
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    made: Callable[..., GrpcServer] = request.param
    with running(lambda: made(options=LIMIT)) as found:
        yield found


@pytest.fixture
def channel(server: Running) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.target) as found:
        yield found


def code_of(call: Callable[[], object]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as error:
        call()
    found: grpc.StatusCode = error.value.code()
    return found


def test_messages_come_back_whatever_their_size(channel: grpc.Channel) -> None:
    for size in (0, 1, 900):
        assert method(channel, "Say")(bytes(size), timeout=5) == bytes(size)


def test_streams_of_every_kind(channel: grpc.Channel) -> None:
    assert list(method(channel, "Parts", "unary_stream")(b"abc", timeout=5)) == [b"a", b"b", b"c"]
    assert list(method(channel, "Written", "unary_stream")(b"abc", timeout=5)) == [b"a", b"b", b"c"]
    assert list(method(channel, "Parts", "unary_stream")(b"", timeout=5)) == []
    assert method(channel, "Joined", "stream_unary")(iter([b"a", b"", b"b"]), timeout=5) == b"ab"
    assert method(channel, "Joined", "stream_unary")(iter(()), timeout=5) == b""
    assert method(channel, "First", "stream_unary")(iter([b"a"]), timeout=5) == b"a."
    assert method(channel, "First", "stream_unary")(iter([b"a", b"b"]), timeout=5) == b"a!"
    assert list(method(channel, "Doubled", "stream_stream")(iter([b"a", b"b"]), timeout=5)) == [b"aa", b"bb"]


def test_a_handler_sees_metadata_peer_and_the_time_left(server: Running, channel: grpc.Channel) -> None:
    sent = (("name", "value"), ("raw-bin", b"\0\xfe"))
    _, call = method(channel, "Say").with_call(b"", timeout=5, metadata=sent)
    method(channel, "Say")(b"")
    timed, untimed = server.echo.seen
    assert {key: timed["metadata"][key] for key, _ in sent} == dict(sent)
    assert "user-agent" in timed["metadata"]
    assert timed["peer"].startswith("ipv4:127.0.0.1:")
    assert 4 < timed["left"] < 5.1
    assert untimed["left"] is None
    assert set(TRAILING) <= {(key, value) for key, value in call.trailing_metadata()}


def test_a_refusal_says_code_details_and_metadata(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as error:
        method(channel, "Refuse")(b"", timeout=5)
    assert error.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert error.value.details() == "not so: ä"
    assert set(TRAILING) <= {(key, value) for key, value in error.value.trailing_metadata()}


def test_a_code_that_is_set_goes_before_the_answer(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as error:
        method(channel, "Coded")(b"x", timeout=5)
    assert (error.value.code(), error.value.details()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "none left")


def test_a_handler_that_fails_is_unknown_and_a_method_that_is_not_there_unimplemented(
    channel: grpc.Channel, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        assert code_of(lambda: method(channel, "Fail")(b"", timeout=5)) is grpc.StatusCode.UNKNOWN
    assert code_of(lambda: method(channel, "NoSuch")(b"", timeout=5)) is grpc.StatusCode.UNIMPLEMENTED
    assert method(channel, "Say")(b"on", timeout=5) == b"on"


def test_a_message_beyond_the_limit_is_refused(channel: grpc.Channel) -> None:
    assert code_of(lambda: method(channel, "Say")(bytes(1001), timeout=5)) is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_caller_that_leaves_or_whose_time_is_over_cancels_its_handler(
    server: Running, channel: grpc.Channel
) -> None:
    left = method(channel, "Hold").future(b"")
    until(lambda: server.echo.holding == 1)
    left.cancel()
    until(lambda: server.echo.gone == 1 and server.echo.ended == 1)
    assert code_of(lambda: method(channel, "Hold")(b"", timeout=0.05)) is grpc.StatusCode.DEADLINE_EXCEEDED
    until(lambda: server.echo.gone == 2 and server.echo.ended == 2)
    assert method(channel, "Say")(b"on", timeout=5) == b"on"


def test_many_calls_at_once_are_each_told_their_own(server: Running, channel: grpc.Channel) -> None:
    calls = [method(channel, "Say").future(str(number).encode(), timeout=20) for number in range(500)]
    assert [call.result() for call in calls] == [str(number).encode() for number in range(500)]
    until(lambda: server.echo.ended == 500)


def test_a_stop_waits_for_calls_under_way_and_takes_no_more(server: Running, channel: grpc.Channel) -> None:
    held = method(channel, "Hold").future(b"kept", timeout=10)
    until(lambda: server.echo.holding == 1)
    stopping = asyncio.run_coroutine_threadsafe(server.server.stop(5.0), server.loop)
    time.sleep(0.1)
    with grpc.insecure_channel(server.target) as late:
        assert code_of(lambda: method(late, "Say")(b"", timeout=2)) is grpc.StatusCode.UNAVAILABLE
    server.release()
    assert held.result() == b"kept"
    stopping.result(10)


def test_a_stop_does_not_wait_longer_than_its_grace(server: Running, channel: grpc.Channel) -> None:
    held = method(channel, "Hold").future(b"")
    until(lambda: server.echo.holding == 1)
    begun = time.monotonic()
    server.of_loop(server.server.stop(0.2))
    assert time.monotonic() - begun < 5
    assert held.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    until(lambda: server.echo.gone == 1)


def test_a_port_that_is_taken_is_an_error(server: Running) -> None:
    alone = [("grpc.so_reuseport", 0)]

    async def other() -> int:
        made = NativeServer(alone) if isinstance(server.server, NativeServer) else grpc.aio.server(options=alone)
        return made.add_insecure_port(server.target)

    with pytest.raises(RuntimeError):
        server.of_loop(other())


# The native one alone.


def test_as_many_calls_as_may_be_are_open_and_the_next_is_refused_unheard() -> None:
    with running(lambda: NativeServer(most=3)) as server, grpc.insecure_channel(server.target) as channel:
        held = [method(channel, "Hold").future(b"", timeout=20) for _ in range(3)]
        until(lambda: server.echo.holding == 3)
        assert code_of(lambda: method(channel, "Say")(b"", timeout=5)) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert not server.echo.seen
        server.release()
        assert [call.result() for call in held] == [b""] * 3
        until(lambda: server.echo.ended == 3)
        assert method(channel, "Say")(b"x", timeout=5) == b"x"


class Gated:
    """A server before which calls make others wait for `pace` seconds each; `refused` of them, by method."""

    def __init__(self, pace: float, known_alone: bool = False, service: str = SERVICE, otherwise: float = 1.0) -> None:
        self.refused = Counter[str]()
        self.gate = RankingGate(service, GATED, "tenant", 0.2, otherwise, known_alone, lambda: pace, self._told)

    def made(self) -> NativeServer:
        return NativeServer(gate=self.gate)

    def _told(self, name: str, count: int) -> None:
        self.refused[name] += count


def hold(server: Running, channel: grpc.Channel, count: int, tenant: str = "") -> None:
    """So many calls more, until they are under way."""
    before, tenants = server.echo.holding, (("tenant", tenant),)
    server.kept += [method(channel, "Hold").future(b"", timeout=20, metadata=tenants) for _ in range(count)]
    until(lambda: server.echo.holding == before + count)


def test_who_would_wait_longer_than_half_of_its_time_is_refused_and_counted() -> None:
    """Four under way, 10 ms each: 40 ms to wait, for which a call needs 80; with 50 ms each it needs 400."""
    gated = Gated(0.01)
    with running(gated.made) as server, grpc.insecure_channel(server.target) as channel:
        hold(server, channel, 4)
        assert method(channel, "Say")(b"x", timeout=0.5) == b"x"
    gated = Gated(0.05)
    with running(gated.made) as server, grpc.insecure_channel(server.target) as channel:
        hold(server, channel, 4)
        for _ in range(3):
            assert code_of(lambda: method(channel, "Say")(b"", timeout=0.3)) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert not server.echo.seen
        until(lambda: gated.refused == {"Say": 3})


def test_a_call_without_a_deadline_has_the_time_that_such_have() -> None:
    """Three under way, 20 ms each: 60 ms, more than half of the 100 that one without has."""
    gated = Gated(0.02, otherwise=0.1)
    with running(gated.made) as server, grpc.insecure_channel(server.target) as channel:
        hold(server, channel, 3)
        assert code_of(lambda: method(channel, "Say")(b"")) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert method(channel, "Say")(b"x", timeout=5) == b"x"


def test_a_burst_passes_and_a_queue_that_stands_does_not() -> None:
    """Five under way, 50 ms each: 250 ms, and 200 is as long as any may wait for more than half a second."""
    gated = Gated(0.05)
    with running(gated.made) as server, grpc.insecure_channel(server.target) as channel:
        hold(server, channel, 5)
        assert code_for(channel, "Refuse", "") is grpc.StatusCode.FAILED_PRECONDITION
        time.sleep(0.6)
        assert code_for(channel, "Refuse", "") is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_not_even_a_burst_waits_for_twice_as_long() -> None:
    gated = Gated(0.05)
    with running(gated.made) as server, grpc.insecure_channel(server.target) as channel:
        hold(server, channel, 9)
        assert code_for(channel, "Refuse", "") is grpc.StatusCode.RESOURCE_EXHAUSTED


def code_for(channel: grpc.Channel, name: str, tenant: str) -> grpc.StatusCode:
    """Of a call that is refused by its handler where it is let in, which says nothing of what answers take."""
    return code_of(lambda: method(channel, name)(b"", timeout=20, metadata=(("tenant", tenant),)))


def test_a_tenant_below_its_share_waits_where_others_are_refused() -> None:
    """Up to twice as long."""
    gated, let_in, refused = Gated(0.05), grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.RESOURCE_EXHAUSTED
    with running(gated.made) as server, grpc.insecure_channel(server.target) as channel:
        assert code_for(channel, "Refuse", "few") is let_in
        hold(server, channel, 5, "many")
        time.sleep(0.6)
        assert code_for(channel, "Refuse", "many") is refused
        assert code_for(channel, "Refuse", "few") is let_in
        hold(server, channel, 4, "few")
        assert code_for(channel, "Refuse", "few") is refused


@pytest.mark.parametrize(("known_alone", "code"), [
    (True, grpc.StatusCode.FAILED_PRECONDITION), (False, grpc.StatusCode.RESOURCE_EXHAUSTED)])
def test_invented_tokens_make_no_share_smaller_where_tenants_are_those_that_are_known(
    known_alone: bool, code: grpc.StatusCode
) -> None:
    gated = Gated(0.05, known_alone)
    with running(gated.made) as server, grpc.insecure_channel(server.target) as channel:
        assert code_for(channel, "Refuse", "one") is grpc.StatusCode.FAILED_PRECONDITION
        hold(server, channel, 1, "one")
        hold(server, channel, 4, "many")
        time.sleep(0.6)
        for number in range(10):
            assert code_for(channel, "Unknown", f"invented {number}") is grpc.StatusCode.UNAUTHENTICATED
        assert code_for(channel, "Refuse", "one") is code


def test_other_services_pass_the_gate() -> None:
    gated = Gated(10.0, service="sluice.test.Other")
    with running(gated.made) as server, grpc.insecure_channel(server.target) as channel:
        hold(server, channel, 3)
        assert method(channel, "Say")(b"x", timeout=1) == b"x"


def test_what_answers_take_is_learned_from_them() -> None:
    """A guess that would let nobody wait is forgotten once answers have shown better."""
    gated = Gated(10.0)
    with running(gated.made) as server, grpc.insecure_channel(server.target) as channel:
        for _ in range(300):
            assert method(channel, "Say")(b"x", timeout=5) == b"x"
        hold(server, channel, 3)
        assert method(channel, "Say")(b"x", timeout=5) == b"x"


def test_one_answer_that_stalls_refuses_nobody() -> None:
    """Half a second for one, of a pace of a millisecond: were it a twentieth of it, fifteen calls more would be half a
    second to wait for."""
    gated = Gated(0.001)
    with running(gated.made) as server, grpc.insecure_channel(server.target) as channel:
        hold(server, channel, 1)
        time.sleep(0.5)
        server.release()
        assert server.kept[0].result() == b""
        server.of_loop(hold_on(server))
        hold(server, channel, 15)
        assert method(channel, "Say")(b"x", timeout=0.7) == b"x"


async def hold_on(server: Running) -> None:
    """Calls that hold do so again."""
    server.echo.held.clear()
