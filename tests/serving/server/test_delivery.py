"""Calls that take turns, come again, or are sent twice, of both clients and over real channels."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc
import pytest

from contracts.errors import ConfigError
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.client import AsyncRankingClient, RankingClient
from serving.server.connection import RankingFailed
from serving.server.delivery import Delivery
from tests.serving.away_server import AwayServer, within_seconds
from tests.serving.in_process_server import InProcessServer

LONG = 30.0


class Moody(sluice_pb2_grpc.RankingServicer):
    """Its first `failing` calls end with `status`, or hang where that is None; then it answers."""

    def __init__(self, failing: int = 0, status: grpc.StatusCode | None = grpc.StatusCode.UNAVAILABLE) -> None:
        self.failing, self.status, self.calls, self.cancelled = failing, status, 0, False

    async def Rank(self, request: pb.RankRequest, context: grpc.aio.ServicerContext) -> pb.RankResponse:
        self.calls += 1
        if self.calls > self.failing:
            return pb.RankResponse(request_id=request.request_id)
        if self.status is not None:
            await context.abort(self.status, "not now")
        try:
            await asyncio.sleep(LONG)
        finally:
            self.cancelled = True
        return pb.RankResponse()


AGAIN = Delivery(attempts=3, backoff_seconds=0.01)


Ask = Callable[..., pb.RankResponse]


def ask(moody: Moody, delivery: Delivery, seconds: float = LONG) -> pb.RankResponse:
    with InProcessServer(moody) as server, RankingClient(server.target, delivery=delivery) as client:
        return client.rank("u", request_id="r", seconds=seconds)


def ask_async(moody: Moody, delivery: Delivery, seconds: float = LONG) -> pb.RankResponse:
    async def ask() -> pb.RankResponse:
        async with listening(moody) as address, AsyncRankingClient(address, delivery=delivery) as client:
            return await client.rank("u", request_id="r", seconds=seconds)

    return asyncio.run(ask())


@asynccontextmanager
async def listening(moody: Moody) -> AsyncIterator[str]:
    """Its address, in the loop of its callers: gRPC's asynchronous side knows one a process."""
    server = grpc.aio.server()
    sluice_pb2_grpc.add_RankingServicer_to_server(moody, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(1.0)


BOTH = pytest.mark.parametrize("ask", [ask, ask_async])


@BOTH
def test_a_call_comes_again_after_a_failure_that_passes(ask: Ask) -> None:
    moody = Moody(failing=2)
    assert ask(moody, AGAIN).request_id == "r"
    assert moody.calls == 3


@BOTH
@pytest.mark.parametrize(("delivery", "status", "calls"), [
    (Delivery(), grpc.StatusCode.UNAVAILABLE, 1), (AGAIN, grpc.StatusCode.INVALID_ARGUMENT, 1),
    (AGAIN, grpc.StatusCode.RESOURCE_EXHAUSTED, 3)])
def test_other_failures_and_the_last_one_are_told(
    ask: Ask, delivery: Delivery, status: grpc.StatusCode, calls: int
) -> None:
    moody = Moody(failing=9, status=status)
    with pytest.raises(RankingFailed) as failure:
        ask(moody, delivery)
    assert failure.value.code == status.name
    assert moody.calls == calls


@BOTH
def test_a_slow_call_is_overtaken_by_a_second_one(ask: Ask) -> None:
    moody = Moody(failing=1, status=None)
    assert ask(moody, Delivery(hedge_seconds=0.05)).request_id == "r"
    assert moody.calls == 2
    assert moody.cancelled


@BOTH
def test_a_call_that_is_answered_is_sent_once(ask: Ask) -> None:
    moody = Moody()
    ask(moody, Delivery(hedge_seconds=LONG))
    assert moody.calls == 1


def test_several_addresses_take_turns() -> None:
    one, two = Moody(), Moody()
    with InProcessServer(one) as first, InProcessServer(two) as second:
        with RankingClient(f"{first.target}, {second.target}") as client:
            client.wait_ready(LONG)
            while min(one.calls, two.calls) < 3:  # until both are connected, one of them gets all
                client.rank("u", seconds=LONG)
                assert one.calls + two.calls < 10_000
                time.sleep(0.005)
        assert min(one.calls, two.calls) >= 3


def test_several_addresses_take_turns_of_the_asynchronous_client_too() -> None:
    one, two = Moody(), Moody()

    async def ask() -> None:
        async with listening(one) as first, listening(two) as second, AsyncRankingClient(f"{first},{second}") as client:
            while min(one.calls, two.calls) < 3:
                await client.rank("u", seconds=LONG)
                assert one.calls + two.calls < 10_000
                await asyncio.sleep(0.005)

    asyncio.run(ask())


@BOTH
@pytest.mark.parametrize("delivery", [Delivery(), Delivery(hedge_seconds=0.05), AGAIN],
                         ids=["once", "hedged", "again"])
def test_no_call_outlives_its_deadline_however_often_it_is_sent(ask: Ask, delivery: Delivery) -> None:
    moody = Moody(failing=9, status=None)
    with pytest.raises(RankingFailed) as failure:
        ask(moody, delivery, 0.5)
    assert failure.value.code == "DEADLINE_EXCEEDED"
    assert moody.calls == (1 if delivery.hedge_seconds is None else 2)
    assert moody.cancelled


def refused(client: RankingClient) -> bool:
    try:
        client.rank("u", seconds=LONG)
    except RankingFailed:
        return True
    return False


@pytest.mark.parametrize("delivery", [Delivery(), AGAIN], ids=["once", "again"])
def test_a_server_that_was_away_is_asked_soon_after_its_return(delivery: Delivery) -> None:
    away = AwayServer()
    with RankingClient(away.target, delivery=delivery) as client:
        with away:
            assert away.sought(lambda: refused(client))
        with InProcessServer(Moody(), port=away.port):
            assert within_seconds(lambda: not refused(client))


def test_a_server_that_is_slow_to_greet_is_waited_for() -> None:
    """Longer than a pause between two tries: else one behind a long way, or at its start, would never be reached."""
    with socket.create_server(("127.0.0.1", 0)) as slow, RankingClient(f"127.0.0.1:{slow.getsockname()[1]}") as client:
        threading.Thread(target=refused, args=(client,), daemon=True).start()
        slow.settimeout(LONG)
        with slow.accept()[0] as reached:
            reached.settimeout(1.5)
            with pytest.raises(TimeoutError):  # in place of the end, which is no bytes
                any(not heard for heard in iter(lambda: reached.recv(4096), None))


def test_names_cannot_be_listed_and_attempts_and_backoff_have_a_limit() -> None:
    with pytest.raises(ConfigError, match="dns:///"):
        RankingClient("here:1,there:2")
    with pytest.raises(ConfigError, match="between 1 and 5"):
        Delivery(attempts=6)
    with pytest.raises(ConfigError, match="at least"):
        Delivery(backoff_seconds=0.001)
