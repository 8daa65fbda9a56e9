"""The Catalog service: checks a batch, stores what is right of it, and says so once it is on disk."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from functools import partial
from itertools import chain, islice
from typing import NoReturn

import grpc

from contracts.errors import RequestError
from contracts.shown import short
from serving.catalogue.catalogue import Catalogue
from serving.catalogue.requests import Asked, ChangeReader, Message
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.batch_turns import BatchTurns, TooManyBatches

MOST_WAITING = 64  # batches that wait for the disk
NOT_KEPT = "this server keeps no changes of items; start it with `sluice serve --fresh DIR`"
log = logging.getLogger("sluice.serving")


class CatalogServicer(sluice_pb2_grpc.CatalogServicer):
    """`catalogue` is None where the server keeps none. Batches are checked in their `turns`."""

    def __init__(self, catalogue: Catalogue | None, turns: BatchTurns | None = None) -> None:
        self._catalogue, self._turns = catalogue, turns or BatchTurns()
        self._reader = None if catalogue is None else ChangeReader(catalogue.bundle)
        self._waiting = 0

    async def Upsert(self, request: pb.UpsertRequest, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return await self._change(request, context)

    async def Withdraw(self, request: pb.WithdrawRequest, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return await self._change(request, context)

    async def SetBids(self, request: pb.SetBidsRequest, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return await self._change(request, context)

    async def SetStock(self, request: pb.SetStockRequest, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return await self._change(request, context)

    async def Status(self, request: pb.CatalogStatusRequest, context: grpc.aio.ServicerContext) -> pb.CatalogStatus:
        if self._catalogue is None:
            await _refuse(context)
        stored = await asyncio.get_running_loop().run_in_executor(self._catalogue.writing, self._catalogue.stored)
        return _status(self._catalogue, stored)

    async def _change(self, request: Message, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        if self._catalogue is None or self._reader is None:
            await _refuse(context)
        try:
            asked = await self._turns.take(partial(self._reader.read, request))
        except RequestError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except TooManyBatches as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        changes = list(chain.from_iterable(one.changes for one in asked))
        if self._waiting >= MOST_WAITING:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{self._waiting} batches wait for the disk; send "
                                                                    "this one again later, or elsewhere")
        self._waiting += 1
        try:
            applied, sequence = await asyncio.get_running_loop().run_in_executor(
                self._catalogue.writing, self._catalogue.record, changes)
        except sqlite3.Error as error:
            log.error("changes of items cannot be stored", exc_info=error)
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"the changes cannot be stored ({short(str(error))}) "
                                                             "and none was; send them again")
        finally:
            self._waiting -= 1
        return await asyncio.get_running_loop().run_in_executor(
            self._catalogue.writing, _response, asked, applied, sequence)


async def _refuse(context: grpc.aio.ServicerContext) -> NoReturn:
    await context.abort(grpc.StatusCode.FAILED_PRECONDITION, NOT_KEPT)
    raise AssertionError("abort raises")


def _response(asked: list[Asked], applied: list[bool], sequence: int) -> pb.ChangeResponse:
    outcomes = iter(applied)
    results = [_result(one, list(islice(outcomes, len(one.changes)))) for one in asked]
    return pb.ChangeResponse(sequence=sequence, results=results)


def _result(asked: Asked, applied: list[bool]) -> pb.ChangeResult:
    if asked.problem is not None:
        return pb.ChangeResult(item_id=asked.item, outcome=pb.ChangeResult.REFUSED, field=asked.problem.field,
                               problem=asked.problem.text)
    outcome = pb.ChangeResult.APPLIED if any(applied) else pb.ChangeResult.SUPERSEDED
    return pb.ChangeResult(item_id=asked.item, outcome=outcome)


def _status(catalogue: Catalogue, stored: int) -> pb.CatalogStatus:
    fresh, follower = catalogue.fresh, catalogue.follower
    return pb.CatalogStatus(
        bundle_version=fresh.bundle.version, applied_sequence=follower.applied, stored_sequence=stored,
        bundle_items=fresh.items.count, changed_items=fresh.changed_items, hidden_items=fresh.hidden_items,
        room=fresh.items.room, unmerged_items=fresh.index.unmerged, merges=fresh.index.merges,
        recall=follower.recall, visible_p99_seconds=follower.visible_p99, failure=follower.failure)
