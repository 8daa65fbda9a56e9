"""However many methods a server has, it waits for calls by the same few tasks; and all of them are found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.by_name import ByName
from serving.request.timed_read import TimedServer

LONG, LOOKS = 20.0, 10
Adding = Callable[[grpc.aio.Server], Any]


class Catalog(sluice_pb2_grpc.CatalogServicer):
    """Of five methods, one of which answers."""

    async def Status(self, request: pb.CatalogStatusRequest, context: grpc.aio.ServicerContext) -> pb.CatalogStatus:
        return pb.CatalogStatus(room=7)


async def settled_tasks() -> int:
    """The tasks there are once their number has stood: those of connecting are over."""
    counts = [len(asyncio.all_tasks())]
    while len(counts) < LOOKS or len(set(counts[-LOOKS:])) > 1:
        await asyncio.sleep(0.01)
        counts.append(len(asyncio.all_tasks()))
    return counts[-1]


async def waiting_tasks(wrap: Adding, more: bool) -> int:
    """Of a server with five methods, or with four more; one of them is asked afterwards."""
    server, before = grpc.aio.server(), await settled_tasks()
    sluice_pb2_grpc.add_CatalogServicer_to_server(Catalog(), wrap(server))
    if more:
        sluice_pb2_grpc.add_EventsServicer_to_server(sluice_pb2_grpc.EventsServicer(), wrap(server))
        sluice_pb2_grpc.add_RankingServicer_to_server(sluice_pb2_grpc.RankingServicer(), wrap(server))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        await asyncio.wait_for(channel.channel_ready(), LONG)
        found = await settled_tasks() - before
        status = await sluice_pb2_grpc.CatalogStub(channel).Status(pb.CatalogStatusRequest(), timeout=LONG)
        assert status.room == 7
    await server.stop(None)
    return found


@pytest.mark.parametrize(("wrap", "tasks"), [
    (ByName, 0), (lambda server: TimedServer(server, LONG), 0), (lambda server: server, 4)])
def test_methods_by_name_cost_no_tasks_and_registered_ones_do(wrap: Adding, tasks: int) -> None:
    async def compare() -> None:
        assert await waiting_tasks(wrap, more=True) == await waiting_tasks(wrap, more=False) + tasks

    asyncio.run(compare())
