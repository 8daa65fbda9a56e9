"""The Ranking service: serving/server/engine.py runs the funnel, the event loop does the rest.

A call's deadline, at most `serve.max_deadline_ms`, is cut by a reserve: `serve.reserve_ms`, and what writing an answer
has lately taken. Under overload answers become simpler (`serve.overload`), and what is more even then is refused when
it comes, unread, so that the capacity goes to those in time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import grpc
from google.rpc import code_pb2
from grpc_status import rpc_status

from contracts.bundle.bundle import Manifest
from contracts.config.stages import Serve
from contracts.shown import short
from serving.access.caller_name import Who, caller_name, named_tenant
from serving.access.callers import UnknownCaller
from serving.access.gate import Gate
from serving.admission.admission import Overloaded
from serving.admission.job import Run
from serving.batches.large_requests import LARGE_BYTES, LargeRequests
from serving.batches.places import NoPlace
from serving.metrics.request_observer import NOBODY, EndedCall, RequestObserver
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.after_call import after
from serving.request.deadline import Deadline
from serving.request.message_bounds import OutOfBounds, largest_message, text
from serving.request.query import FreshUser, PageAnswer, RankAnswer, RankQuery, ScoreQuery, Users
from serving.request.stage_clock import RunningQuantile
from serving.request.wire_values import MOST_VALUES
from serving.response_log.response_log import ResponseLog
from serving.response_log.response_recorder import CANCELLED, OK, ResponseRecorder, at_the_end
from serving.server.bundle_health import bundle_age
from serving.server.engine import Answer, Engine
from serving.server.page_run import PageRun
from serving.server.statuses import Stopping, status_of
from serving.server.translation import (
    to_page_query,
    to_query,
    to_response,
    to_score_query,
    to_score_response,
    to_why_not,
    to_why_not_response,
)
from serving.stages.funnel import Funnel
from serving.stages.request_run import RequestRun
from serving.stages.score_run import ScoreRun
from serving.why_not.why_not_run import WhyNotRun

OF_USERS = 0.5  # of the time that a request has, at most to wait for what is known of its user
Begun = TypeVar("Begun")
Query = TypeVar("Query", RankQuery, ScoreQuery)


class RankingServicer(sluice_pb2_grpc.RankingServicer):
    """`taken` counts the calls that gRPC has handed over, answered or not, `turned_away` those of them that were
    refused unread; while `refusing` none is begun."""

    def __init__(
        self, funnel: Funnel, manifest: Manifest, serve: Serve, answers: ResponseLog | None = None,
        gate: Gate | None = None, observer: RequestObserver = NOBODY, users: Users | None = None,
        who: Who | None = None,
    ) -> None:
        self._funnel, self._manifest, self._serve, self._gate = funnel, manifest, serve, gate
        self._observer, self._users = observer, users
        self._recorder = ResponseRecorder(answers, manifest)
        self._followed = answers is not None or observer is not NOBODY  # somebody wants to know how a call ends
        self._writing = RunningQuantile()
        self._engine = Engine(funnel, serve.max_queue, serve.queue_ms / 1000, serve.reserve_ms / 1000,
                              serve.tenant_shares, degrades=serve.overload == "degrade")
        self._who = who or caller_name(gate)
        self._large = LargeRequests(self.largest, self._who)
        self.taken, self.turned_away, self.refusing = 0, 0, False

    @property
    def largest(self) -> int:
        """Bytes of a message that is parsed."""
        return largest_message(self._serve)

    @property
    def most_parts(self) -> int:
        """Messages and listed texts within one: three for each candidate and each value, more than they take."""
        return 3 * (self._serve.max_candidates + MOST_VALUES)

    @property
    def patience(self) -> float:
        """Seconds that a request is waited for once the call is there."""
        return self._serve.max_deadline_ms / 1000

    @property
    def default_seconds(self) -> float:
        """That a call without a deadline may take."""
        return self._serve.seconds(None)

    @property
    def reserve(self) -> float:
        """Seconds of every deadline that are not for work."""
        return self._serve.reserve_ms / 1000 + self._writing.value

    @property
    def floor(self) -> float:
        """Seconds of a deadline from which on every call is answered in time, by a search of the items at least."""
        return self.reserve + self._funnel.floor

    @property
    def queue(self) -> tuple[int, float]:
        """Requests that wait, and the seconds that the oldest has."""
        return self._engine.waiting, self._engine.queue_age

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def reading(self) -> int:
        """Large requests that are being read, or wait for it."""
        return self._large.waiting

    def load(self) -> dict[str, str]:
        """For the health check: the floor, the requests that wait, how long the oldest has, those refused unread."""
        return {"sluice-floor-ms": f"{1000 * self.floor:.2f}", "sluice-waiting": str(self._engine.waiting),
                "sluice-queue-ms": f"{1000 * self._engine.queue_age:.2f}",
                "sluice-turned-away": str(self.turned_away)}

    def enter(self, method: str, context: grpc.aio.ServicerContext) -> str:
        """Of every call, before its request is read (serving/server/entry.py): why it is refused, or ""."""
        self.taken += 1
        if self.refusing or self._engine.free:
            return ""
        least = 0.0 if method == "Score" else self._funnel.least
        why = self._engine.refusal(self._tenant(context), self._seconds(context) - self.reserve, least)
        self.turned_away += bool(why)
        return why

    async def Rank(self, request: pb.RankRequest, context: grpc.aio.ServicerContext) -> pb.RankResponse:
        """One request from arrival to answer; what fails is a status, and either is logged."""
        request_id = request.request_id or _new_id()
        call = self._recorder.begin(request, request_id, self.reserve, context)
        caller = self._observer.caller(context)

        def tell(context: grpc.aio.ServicerContext) -> None:
            self._observer.ended(EndedCall("Rank", *call.outcome, short(request_id), caller))

        if self._followed:
            after(context, call.ended)
            after(context, tell)
        try:
            answer = await self._answer(request, self._deadline(context), context)
        except Overloaded as error:  # the cheapest way to say so: there may be thousands a second
            call.failed("RESOURCE_EXHAUSTED")
            context.set_code(grpc.StatusCode.RESOURCE_EXHAUSTED)
            context.set_details(str(error))
            return pb.RankResponse()
        except Exception as error:
            status = status_of(error, request_id, caller)
            kept = pb.RankRequest(user_id=short(request.user_id)) if isinstance(error, OutOfBounds) else request
            call.refused(code_pb2.Code.Name(status.code), kept, short(request_id))
            await context.abort_with_status(rpc_status.to_status(status))
        written = time.perf_counter()
        response = to_response(answer, request_id, bundle_age(self._manifest))
        call.answered(answer)
        self._writing.tell(time.perf_counter() - written)
        return response

    def gate_refused(self, method: str, count: int) -> None:
        """So many calls, before the event loop has heard of them."""
        self.taken += count
        self.turned_away += count
        self._observer.refused(method, "RESOURCE_EXHAUSTED", count)
        if method == "Rank":
            self._recorder.refused(count)

    def unread(self, method: str, status: str, context: grpc.aio.ServicerContext) -> None:
        """A call that ends so before its request is read. `Score` shows nothing, so nothing of it is logged."""
        self._observer.ended(EndedCall(method, status))
        if method == "Rank":
            self._recorder.unread(status, self.reserve, context)

    async def Score(self, request: pb.ScoreRequest, context: grpc.aio.ServicerContext) -> pb.ScoreResponse:
        """Given items, scored; what fails is a status. Nothing is shown, so nothing is logged."""
        request_id, deadline = request.request_id or _new_id(), self._deadline(context)

        def begin(fresh: FreshUser | None) -> ScoreRun:
            return self._funnel.begin_score(_knowing(to_score_query(request, self._serve), fresh), deadline)

        answer = await self._whole(
            "Score", request_id, context, lambda: self._begun(request, deadline, context, begin))
        return to_score_response(answer, request_id)

    async def WhyNot(self, request: pb.WhyNotRequest, context: grpc.aio.ServicerContext) -> pb.WhyNotResponse:
        """A slate that is not shown, and what has become of other items; not logged either."""
        request_id, deadline = request.request.request_id or _new_id(), self._deadline(context)

        def begin(fresh: FreshUser | None) -> WhyNotRun:
            query, items = to_why_not(request, self._serve)
            return WhyNotRun(self._funnel, _knowing(query, fresh), items, deadline)

        found = await self._whole(
            "WhyNot", request_id, context, lambda: self._begun(request.request, deadline, context, begin))
        return to_why_not_response(found, request_id, bundle_age(self._manifest))

    async def _whole(
        self, method: str, request_id: str, context: grpc.aio.ServicerContext,
        begin: Callable[[], Awaitable[Run[Answer]]],
    ) -> Answer:
        """All or nothing in time; what fails is a status."""
        begun, said, spent, caller = time.perf_counter(), CANCELLED, 0.0, self._observer.caller(context)

        def tell(context: grpc.aio.ServicerContext) -> None:
            status = at_the_end(said, context, self.reserve)
            self._observer.ended(EndedCall(method, status, spent, None, short(request_id), caller))

        if self._followed:
            after(context, tell)
        try:
            if self.refusing:
                raise Stopping("the server is stopping; ask another one")
            answer = await self._engine.submit(await begin(), self._tenant(context))
            said = OK
        except Exception as error:
            status = status_of(error, request_id, caller)
            said = code_pb2.Code.Name(status.code)
            await context.abort_with_status(rpc_status.to_status(status))
        finally:
            spent = time.perf_counter() - begun
        return answer

    def _tenant(self, context: grpc.aio.ServicerContext) -> str:
        """Whose share of the server this is: behind a gate the name of the token's owner, whatever it says itself."""
        if self._gate is None:
            return named_tenant(context)
        try:
            return self._gate.caller(context.invocation_metadata() or ()).name
        except UnknownCaller:  # it was known when the call came
            return ""

    def _deadline(self, context: grpc.aio.ServicerContext) -> Deadline:
        return Deadline(self._seconds(context), self.reserve, watched=True)

    def _seconds(self, context: grpc.aio.ServicerContext) -> float:
        """Until the caller's deadline, or the server's own where that is earlier."""
        return self._serve.seconds(context.time_remaining())

    async def _answer(
        self, request: pb.RankRequest, deadline: Deadline, context: grpc.aio.ServicerContext
    ) -> RankAnswer | PageAnswer:
        if self.refusing:
            raise Stopping("the server is stopping; ask another one")

        def begin(fresh: FreshUser | None) -> RequestRun | PageRun:
            if not request.placements:
                return self._funnel.begin(_knowing(to_query(request, self._serve), fresh), deadline)
            page = to_page_query(request, self._serve)
            queries = tuple(_knowing(query, fresh) for query in page.queries)
            return PageRun(self._funnel, replace(page, queries=queries), deadline)

        return await self._engine.submit(await self._begun(request, deadline, context, begin), self._tenant(context))

    async def _begun(
        self, request: pb.RankRequest | pb.ScoreRequest, deadline: Deadline, context: grpc.aio.ServicerContext,
        begin: Callable[[FreshUser | None], Begun],
    ) -> Begun:
        """What `begin` makes of the request and of what is known of its user beyond the bundle; of a large one beside
        the event loop, which its ten thousands of values would hold up. Where the users' store is slow, OF_USERS of the
        deadline are spent on it and the rest is the funnel's."""
        user = text("user_id", request.user_id, self._serve)
        large = request.ByteSize() > LARGE_BYTES
        try:
            if large:
                self._large.hold(request.ByteSize(), context)
            fresh = None if self._users is None else await self._users.read(
                user, OF_USERS * deadline.remaining(), partial(self._who, context))
            return await self._large.read(partial(begin, fresh), context) if large else begin(fresh)
        except NoPlace as error:
            raise Overloaded(str(error)) from None

    def close(self, seconds: float | None = None) -> None:
        """Waits for the request that is being ranked, so long at most."""
        self._large.close()
        self._engine.close(seconds)


def _knowing(query: Query, fresh: FreshUser | None) -> Query:
    """The query, with what is known of the user beyond the bundle."""
    return query if fresh is None else replace(query, fresh=fresh)


def _new_id() -> str:  # 128 random bits
    return os.urandom(16).hex()
