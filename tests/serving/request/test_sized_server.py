"""What is too large is refused before it is parsed, at once; all else is as without."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.sized_server import SizedServer

LARGEST, MOST = 1000, 40


class Echo(sluice_pb2_grpc.CatalogServicer):
    """Answers every withdrawal, as many as there are."""

    async def Withdraw(self, request: pb.WithdrawRequest, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return pb.ChangeResponse(results=[pb.ChangeResult(item_id=one.item_id) for one in request.items])


async def answer(items: int, sent: bytes = b"") -> pb.ChangeResponse:
    server = grpc.aio.server()
    sluice_pb2_grpc.add_CatalogServicer_to_server(Echo(), SizedServer(server, LARGEST, most=MOST))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            asked = pb.WithdrawRequest(items=[pb.Change(item_id=f"i{n:08d}") for n in range(items)])
            if sent:
                await channel.unary_unary("/sluice.v1.Catalog/Withdraw")(sent, timeout=20)
            return await sluice_pb2_grpc.CatalogStub(channel).Withdraw(asked, timeout=20)
    finally:
        await server.stop(None)


def test_what_fits_is_answered():
    assert [one.item_id for one in asyncio.run(answer(3)).results] == ["i00000000", "i00000001", "i00000002"]


def test_what_is_too_large_is_refused_with_its_size_and_the_limit():
    with pytest.raises(grpc.aio.AioRpcError, match=r"larger than max: 1000 bytes \(serve.max_request_kb\)") as caught:
        asyncio.run(answer(LARGEST))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_what_is_no_request_is_an_invalid_argument():
    with pytest.raises(grpc.aio.AioRpcError, match="no request of this method") as caught:
        asyncio.run(answer(1, sent=b"\x0a\x03u01"))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_batch_of_more_entries_than_may_be_is_refused_unparsed():
    """What follows the last entry that may be could not be parsed."""
    assert len(asyncio.run(answer(MOST)).results) == MOST
    with pytest.raises(grpc.aio.AioRpcError, match="more than 40 entries") as caught:
        asyncio.run(answer(1, sent=b"\x0a\x00" * (MOST + 1) + b"\xff"))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
