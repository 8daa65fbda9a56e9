"""The Catalog service: checks a batch, stores what is right of it, and says so once it is on disk."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NoReturn

import grpc

from contracts.config.stages import Serve
from contracts.shown import short
from serving.access.caller_name import Who, caller_name
from serving.batches.batch_turns import BatchTurns
from serving.batches.places import NoPlace
from serving.batches.sized_server import BatchBounds, SizedServer
from serving.batches.trouble import Trouble
from serving.catalogue.catalogue import Catalogue
from serving.catalogue.requests import Asked, ChangeReader, Message
from serving.item_counters.counter_state import NO_COUNTERS, CounterState
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.message_bounds import largest_message
from serving.request.timed_read import TimedServer

NOT_KEPT = "this server keeps no changes of items; start it with `sluice serve --fresh DIR`"
Batch = list[Asked]


class CatalogServicer(sluice_pb2_grpc.CatalogServicer):
    """`catalogue` is None where the server keeps none, `counters` says how those of items stand. Batches take turns of
    their own, once to be read and once to be written, which callers share by what `who` names them, and which wait for
    lulls of requests."""

    def __init__(
        self, catalogue: Catalogue | None, serve: Serve, who: Who | None = None,
        counters: Callable[[], CounterState] = lambda: NO_COUNTERS,
    ) -> None:
        self._catalogue, self._counters, self._who = catalogue, counters, who or caller_name(None)
        self._reader = None if catalogue is None else ChangeReader(catalogue.bundle)
        self._trouble = Trouble("changes of items cannot be stored (%s); their senders are told, until they can",
                                "changes of items are stored again")
        self._bounds = BatchBounds(
            largest=largest_message(serve), entries=serve.max_candidates, setting="max_candidates")
        self._turns = BatchTurns() if catalogue is None else BatchTurns(within=catalogue.turn)
        self._disk = None if catalogue is None else BatchTurns(
            what="wait for the disk", thread=catalogue.writing, within=catalogue.turn)

    def add_to(self, server: grpc.aio.Server | TimedServer) -> None:
        """The service."""
        sized = SizedServer(server, self._bounds, self._turns, self.read, self._who)
        sluice_pb2_grpc.add_CatalogServicer_to_server(self, sized)

    def close(self) -> None:
        """Waits for what is being read."""
        self._turns.close()

    def read(self, request: Message | pb.CatalogStatusRequest) -> Batch:
        """In its turn (serving/batches/sized_server.py). Raises OutOfBounds."""
        if self._reader is None or isinstance(request, pb.CatalogStatusRequest):
            return []
        return self._reader.read(request)

    async def Upsert(self, asked: Batch, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return await self._change(asked, context)

    async def Withdraw(self, asked: Batch, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return await self._change(asked, context)

    async def SetBids(self, asked: Batch, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return await self._change(asked, context)

    async def SetStock(self, asked: Batch, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        return await self._change(asked, context)

    async def Status(self, _: Batch, context: grpc.aio.ServicerContext) -> pb.CatalogStatus:
        if self._catalogue is None:
            await _refuse(context)
        try:
            stored = await asyncio.get_running_loop().run_in_executor(self._catalogue.reading, self._catalogue.stored)
        except sqlite3.Error as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, _unread(self._catalogue.path, error))
            raise AssertionError("abort raises") from None
        return _status(self._catalogue, stored, self._counters())

    async def _change(self, asked: Batch, context: grpc.aio.ServicerContext) -> pb.ChangeResponse:
        if self._disk is None:
            await _refuse(context)
        try:
            stored = await self._disk.take(self._who(context), partial(self._recorded, asked))
        except NoPlace as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        except sqlite3.Error as error:
            self._trouble.say(short(str(error)))
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"the changes cannot be stored ({short(str(error))}) "
                                                             "and none was; send them again")
        else:
            self._trouble.say("")
            return stored
        raise AssertionError("abort raises")


    def _recorded(self, asked: Batch) -> pb.ChangeResponse:
        """Raises sqlite3.Error."""
        assert self._catalogue is not None  # or there was nowhere to wait
        applied, sequence = self._catalogue.record(list(chain.from_iterable(one.changes for one in asked)))
        return _response(asked, applied, sequence)


def _unread(path: Path, error: sqlite3.Error) -> str:
    return (f"the changes of items in {path} cannot be read ({short(str(error))}), and what is shown stays as it was; "
            "see to the disk, or move the file away and start the server anew")


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


def _status(catalogue: Catalogue, stored: int, counters: CounterState) -> pb.CatalogStatus:
    fresh, follower = catalogue.fresh, catalogue.follower
    unshown = fresh.unshown.state
    return pb.CatalogStatus(
        bundle_version=fresh.bundle.version, applied_sequence=follower.applied, stored_sequence=stored,
        bundle_items=fresh.items.count, changed_items=fresh.changed_items, hidden_items=fresh.hidden_items,
        room=fresh.items.room, recall=follower.recall, visible_p99_seconds=follower.visible_p99,
        failure=follower.failure,
        counted_items=counters.items, counters_age_seconds=counters.age, counters_failure=counters.failure,
        unshown_items=unshown.items, last_unshown=unshown.last, uncounted_events=counters.waiting,
        store_mark=catalogue.mark)
