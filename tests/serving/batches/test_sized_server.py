"""Batches over a real channel: what is too large is refused unparsed, the rest is parsed and checked in one turn,
beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from contracts.errors import RequestError
from serving.batches.batch_turns import BatchTurns
from serving.batches.sized_server import SMALL_BYTES, BatchBounds, Read, SizedServer, as_it_is
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc

SECONDS, MOST = 20.0, 40
BOUNDS = BatchBounds(largest=1000, entries=MOST, setting="max_candidates", parts=100)
BATCH = pb.WithdrawRequest(items=[pb.Change(item_id=f"i{n}") for n in range(5)])  # of more than a few entries


class Echo(sluice_pb2_grpc.CatalogServicer):
    """Answers every withdrawal, as many as there are."""

    async def Withdraw(self, request: pb.WithdrawRequest, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return pb.ChangeResponse(results=[pb.ChangeResult(item_id=one.item_id) for one in request.items])

    async def Upsert(self, request: pb.UpsertRequest, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return pb.ChangeResponse(sequence=sum(len(one.values) for one in request.items))


@asynccontextmanager
async def served(read: Read = as_it_is, most: int = 64) -> AsyncIterator[grpc.aio.Channel]:
    server, turns = grpc.aio.server(), BatchTurns(most)
    sluice_pb2_grpc.add_CatalogServicer_to_server(Echo(), SizedServer(server, BOUNDS, turns, read))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop(None)
        turns.close()


def ask(sent: bytes, method: str = "Withdraw", read: Read = as_it_is) -> pb.ChangeResponse:
    async def drive() -> bytes:
        async with served(read) as channel:
            answer: bytes = await channel.unary_unary(f"/sluice.v1.Catalog/{method}")(sent, timeout=SECONDS)
            return answer

    return pb.ChangeResponse.FromString(asyncio.run(drive()))


def refusal(sent: bytes, method: str = "Withdraw", read: Read = as_it_is) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        ask(sent, method, read)
    return caught.value.code(), caught.value.details() or ""


def withdrawal(items: int, name: str = "i{:08d}") -> bytes:
    return pb.WithdrawRequest(items=[pb.Change(item_id=name.format(n)) for n in range(items)]).SerializeToString()


def test_what_fits_is_answered() -> None:
    assert [one.item_id for one in ask(withdrawal(3)).results] == ["i00000000", "i00000001", "i00000002"]


def test_what_is_too_large_is_refused_with_its_size_and_the_limit() -> None:
    code, why = refusal(withdrawal(1000))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max: 1000 bytes (serve.max_request_kb)" in why


@pytest.mark.parametrize("sent", [b"\x0a\x03u01", withdrawal(30)[:-1]])
def test_what_is_no_request_is_an_invalid_argument(sent: bytes) -> None:
    code, why = refusal(sent)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "no request of this method" in why


def test_a_batch_of_more_entries_than_may_be_is_refused_unparsed() -> None:
    """What follows the last entry that may be could not be parsed."""
    assert len(ask(withdrawal(MOST, "{}")).results) == MOST
    code, why = refusal(b"\x0a\x00" * (MOST + 1) + b"\xff")
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "more than 40 entries, as many as serve.max_candidates allows" in why


def test_one_entry_of_more_values_than_may_be_is_refused_unparsed() -> None:
    item = pb.ItemUpsert(values={f"{n}": pb.Value() for n in range(40)}).SerializeToString()
    assert ask(pb.UpsertRequest(items=[pb.ItemUpsert.FromString(item)]).SerializeToString(), "Upsert").sequence == 40
    many = b"\x12\x00" * 300  # of one name, so that one would be left of them
    code, why = refusal(b"\x0a" + bytes([len(many) & 127 | 128, len(many) >> 7]) + many, "Upsert")
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "holds more than 100 values" in why


def test_what_a_check_makes_is_what_the_method_is_given_and_what_it_refuses_is_said() -> None:
    def first_alone(request: pb.WithdrawRequest) -> pb.WithdrawRequest:
        if not request.items:
            raise RequestError("items", "is empty; name one")
        return pb.WithdrawRequest(items=request.items[:1])

    assert len(ask(withdrawal(3), read=first_alone).results) == 1
    assert refusal(b"", read=first_alone) == (grpc.StatusCode.INVALID_ARGUMENT, "items: is empty; name one")


def test_one_batch_is_unpacked_at_a_time_and_a_small_one_waits_for_none() -> None:
    """Parsing and check are one turn: a second begins after the first has ended."""
    at_work, may_go, most = list[int](), threading.Event(), list[int]()

    def counted(request: Any) -> Any:
        if len(request.items) > 1:
            at_work.append(1)
            most.append(len(at_work))
            may_go.wait(SECONDS)
            at_work.pop()
        return request

    async def drive() -> None:
        async with served(counted) as channel:
            stub = sluice_pb2_grpc.CatalogStub(channel)
            batches = [asyncio.ensure_future(answered(stub.Withdraw, BATCH)) for _ in range(3)]
            while not at_work:
                await asyncio.sleep(0)
            small = pb.WithdrawRequest(items=[pb.Change(item_id="now")])
            assert small.ByteSize() <= SMALL_BYTES
            assert [one.item_id for one in (await answered(stub.Withdraw, small)).results] == ["now"]
            assert not any(batch.done() for batch in batches)
            may_go.set()
            assert [len(found.results) for found in await asyncio.gather(*batches)] == [5, 5, 5]

    asyncio.run(asyncio.wait_for(drive(), SECONDS))
    assert most == [1, 1, 1]


def test_a_line_that_is_full_is_said() -> None:
    may_go, begun = threading.Event(), threading.Event()

    def held(request: Any) -> Any:
        begun.set()
        may_go.wait(SECONDS)
        return request

    async def drive() -> None:
        async with served(held, most=1) as channel:
            stub = sluice_pb2_grpc.CatalogStub(channel)
            first = asyncio.ensure_future(answered(stub.Withdraw, BATCH))
            while not begun.is_set():
                await asyncio.sleep(0)
            with pytest.raises(grpc.aio.AioRpcError, match="1 batches wait to be read") as caught:
                await answered(stub.Withdraw, BATCH)
            may_go.set()
            await first
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    asyncio.run(asyncio.wait_for(drive(), SECONDS))


async def answered(call: Callable[..., Any], request: Any) -> pb.ChangeResponse:
    found: pb.ChangeResponse = await call(request, timeout=SECONDS)
    return found
