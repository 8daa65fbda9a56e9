"""A call that sends nothing ends by itself, whatever the service; others are answered as without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from serving.batches.batch_turns import BatchTurns
from serving.batches.sized_server import BatchBounds, SizedServer
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.timed_read import TimedServer

LONG = 20.0
BOUNDS = BatchBounds(largest=1000, entries=40, setting="max_candidates")
HEALTH = "/grpc.health.v1.Health/"


class Echo(sluice_pb2_grpc.CatalogServicer):
    """Answers every withdrawal, as many as there are."""

    async def Withdraw(self, request: pb.WithdrawRequest, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return pb.ChangeResponse(results=[pb.ChangeResult(item_id=one.item_id) for one in request.items])


@asynccontextmanager
async def served(seconds: float) -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server()
    timed = TimedServer(server, seconds)
    sluice_pb2_grpc.add_CatalogServicer_to_server(Echo(), SizedServer(timed, BOUNDS, BatchTurns()))
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), timed)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.stop(None)


def drive(act: Callable[[grpc.aio.Channel], Awaitable[None]], seconds: float) -> None:
    async def run() -> None:
        async with served(seconds) as channel:
            await act(channel)

    asyncio.run(run())


@pytest.mark.parametrize("method", ["/sluice.v1.Catalog/Withdraw", HEALTH + "Check", HEALTH + "Watch"])
def test_a_call_that_sends_nothing_ends(method: str) -> None:
    async def act(channel: grpc.aio.Channel) -> None:
        with pytest.raises(grpc.aio.AioRpcError, match=r"no request came for 0\.01 s") as caught:
            await channel.stream_unary(method)(timeout=LONG)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    drive(act, 0.01)


def test_calls_with_a_request_are_answered() -> None:
    async def act(channel: grpc.aio.Channel) -> None:
        asked = pb.WithdrawRequest(items=[pb.Change(item_id="i1")])
        answered = await sluice_pb2_grpc.CatalogStub(channel).Withdraw(asked, timeout=LONG)
        assert [one.item_id for one in answered.results] == ["i1"]
        stub = health_pb2_grpc.HealthStub(channel)
        assert (await stub.Check(health_pb2.HealthCheckRequest(), timeout=LONG)).status == 1
        assert (await stub.Watch(health_pb2.HealthCheckRequest(), timeout=LONG).read()).status == 1

    drive(act, LONG)


@pytest.mark.parametrize(("sent", "why"), [([], "without a request"), ([b"\xff"], "no request of this method")])
def test_what_is_no_request_is_an_invalid_argument(sent: list[bytes], why: str) -> None:
    async def act(channel: grpc.aio.Channel) -> None:
        with pytest.raises(grpc.aio.AioRpcError, match=why) as caught:
            await channel.stream_unary(HEALTH + "Check")(iter(sent), timeout=LONG)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    drive(act, LONG)
