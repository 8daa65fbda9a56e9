"""The Ranking service: one thread runs the funnel, the event loop does the rest.

A request that waited until its deadline passed is refused when its turn comes, without work: under overload the
capacity then goes to requests that can still be answered in time.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from contracts.bundle.bundle import Manifest
from contracts.errors import RequestError, SluiceError
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.deadline import Deadline, DeadlineExpired
from serving.request.query import RankAnswer, RankQuery
from serving.server.bundle_health import bundle_age
from serving.server.response_log import ResponseLog
from serving.server.response_recorder import ResponseRecorder
from serving.server.translation import to_query, to_response
from serving.stages.funnel import Funnel

log = logging.getLogger("sluice.serving")


class Stopping(SluiceError):
    """The server takes no more requests."""


class RankingServicer(sluice_pb2_grpc.RankingServicer):
    """`taken` counts the requests that gRPC has handed over, answered or not; while `refusing` none is begun."""

    def __init__(
        self, funnel: Funnel, manifest: Manifest, default_limit: int, deadline_ms: int,
        answers: ResponseLog | None = None,
    ) -> None:
        self._funnel, self._manifest = funnel, manifest
        self._default_limit = default_limit
        self._default_seconds = deadline_ms / 1000
        self._recorder = ResponseRecorder(answers, manifest)
        self.taken = 0
        self.refusing = False
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="funnel")

    async def Rank(self, request: pb.RankRequest, context: grpc.aio.ServicerContext) -> pb.RankResponse:
        """One request from arrival to answer; what fails is a status, and either is logged."""
        self.taken += 1
        began, request_id = time.perf_counter(), request.request_id or uuid.uuid4().hex
        left = context.time_remaining()
        deadline = Deadline(self._default_seconds if left is None else left)
        try:
            answer = await self._answer(request, deadline)
        except asyncio.CancelledError:
            self._recorder.record(request, request_id, "CANCELLED", None, began)
            raise
        except Exception as error:
            status = _status(error, request_id)
            self._recorder.record(request, request_id, code_pb2.Code.Name(status.code), None, began)
            await context.abort_with_status(rpc_status.to_status(status))
        self._recorder.record(request, request_id, "OK", answer, began)
        return to_response(answer, request_id, bundle_age(self._manifest))

    async def _answer(self, request: pb.RankRequest, deadline: Deadline) -> RankAnswer:
        if self.refusing:
            raise Stopping("the server is stopping; ask another one")
        query = to_query(request, self._default_limit)
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._rank, query, deadline)

    def _rank(self, query: RankQuery, deadline: Deadline) -> RankAnswer:
        return self._funnel.rank(query, deadline)

    def close(self) -> None:
        """Waits for the request that is being ranked."""
        self._worker.shutdown(wait=True)


def _status(error: Exception, request_id: str) -> status_pb2.Status:
    """What the caller is told."""
    if isinstance(error, RequestError):
        return _invalid(error)
    if isinstance(error, DeadlineExpired):
        return status_pb2.Status(code=code_pb2.DEADLINE_EXCEEDED, message=str(error))
    if isinstance(error, Stopping):
        return status_pb2.Status(code=code_pb2.UNAVAILABLE, message=str(error))
    log.error("request %s failed", request_id, exc_info=error)
    return status_pb2.Status(code=code_pb2.INTERNAL, message="the ranking failed; the server's log has the cause")


def _invalid(error: RequestError) -> status_pb2.Status:
    violation = error_details_pb2.BadRequest.FieldViolation(
        field=error.field, description=str(error).removeprefix(f"{error.field}: ")
    )
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    return status_pb2.Status(code=code_pb2.INVALID_ARGUMENT, message=str(error), details=[detail])
