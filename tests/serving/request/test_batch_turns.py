"""Heavy batches over a real channel, and the event loop that they leave alone."""

from __future__ import annotations

import asyncio
import threading

import grpc
import pytest

from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.batch_turns import BatchTurns, TooManyBatches
from serving.request.sized_server import SizedServer

SECONDS = 20.0


def test_one_at_a_time_and_no_more_wait_than_may() -> None:
    async def drive() -> None:
        turns, may_go, at_once = BatchTurns(most=2), threading.Event(), list[int]()

        def work() -> int:
            at_once.append(1)
            may_go.wait(SECONDS)
            return len(at_once)

        first, second = (asyncio.ensure_future(turns.take(work)) for _ in range(2))
        async with asyncio.timeout(SECONDS):
            while not at_once:
                await asyncio.sleep(0)
        with pytest.raises(TooManyBatches, match="2 batches"):
            await turns.take(work)
        may_go.set()
        assert (await first, await second) == (1, 2)
        assert await turns.take(lambda: 7) == 7
        turns.close()

    asyncio.run(drive())


def test_who_goes_away_leaves_its_batch_in_the_line() -> None:
    """What it holds is held until its turn, so it counts until then."""
    async def drive() -> None:
        turns, may_go = BatchTurns(most=2), threading.Event()
        first, left = (asyncio.ensure_future(turns.take(lambda: may_go.wait(SECONDS))) for _ in range(2))
        await asyncio.sleep(0)  # both have come
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        with pytest.raises(TooManyBatches, match="2 batches"):
            await turns.take(lambda: True)
        may_go.set()
        assert await first
        while turns.waiting:
            await asyncio.sleep(0.001)
        turns.close()

    asyncio.run(asyncio.wait_for(drive(), SECONDS))


def test_others_are_answered_while_a_batch_is_read() -> None:
    """The batch is not done before another call has been answered: in the event loop neither ever would be."""
    class Answers(sluice_pb2_grpc.CatalogServicer):
        def __init__(self, turns: BatchTurns) -> None:
            self._turns, self._other = turns, threading.Event()

        async def Withdraw(self, request: pb.WithdrawRequest, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
            answered = await self._turns.take(lambda: self._other.wait(SECONDS))
            return pb.ChangeResponse(sequence=int(answered))

        async def other(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            self._other.set()
            return b"ranked"

    async def drive() -> None:
        server, turns = grpc.aio.server(), BatchTurns()
        answers = Answers(turns)
        sluice_pb2_grpc.add_CatalogServicer_to_server(answers, SizedServer(server, 1 << 20, turns))
        handlers = {"Rank": grpc.unary_unary_rpc_method_handler(answers.other)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("sluice.v1.Ranking", handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            batch = sluice_pb2_grpc.CatalogStub(channel).Withdraw(pb.WithdrawRequest(), timeout=2 * SECONDS)
            await asyncio.sleep(0.05)
            assert await channel.unary_unary("/sluice.v1.Ranking/Rank")(b"", timeout=SECONDS) == b"ranked"
            assert (await batch).sequence == 1
        await server.stop(None)
        turns.close()

    asyncio.run(drive())
