"""The Ranking service: one thread runs the funnel, the event loop does the rest.

A request that waited until its deadline passed is refused when its turn comes, without work: under overload the
capacity then goes to requests that can still be answered in time.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from contracts.errors import RequestError
from serving.deadline import Deadline, DeadlineExpired
from serving.funnel import Funnel
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.query import RankAnswer, RankQuery
from serving.translation import to_query, to_response

log = logging.getLogger("sluice.serving")


class RankingServicer(sluice_pb2_grpc.RankingServicer):
    """`taken` counts the requests that gRPC has handed over, answered or not; while `refusing` none is begun."""

    def __init__(self, funnel: Funnel, default_limit: int, deadline_ms: int) -> None:
        self._funnel = funnel
        self._default_limit = default_limit
        self._default_seconds = deadline_ms / 1000
        self.taken = 0
        self.refusing = False
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="funnel")

    async def Rank(self, request: pb.RankRequest, context: grpc.aio.ServicerContext) -> pb.RankResponse:
        self.taken += 1
        if self.refusing:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the server is stopping; ask another one")
        left = context.time_remaining()
        deadline = Deadline(self._default_seconds if left is None else left)
        try:
            query = to_query(request, self._default_limit)
            answer = await asyncio.get_running_loop().run_in_executor(self._worker, self._rank, query, deadline)
        except RequestError as error:
            await context.abort_with_status(rpc_status.to_status(_invalid(error)))
        except DeadlineExpired as error:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, str(error))
        except Exception:
            log.exception("request %s failed", request.request_id)
            await context.abort(grpc.StatusCode.INTERNAL, "the ranking failed; the server's log has the cause")
        return to_response(answer, request.request_id)

    def _rank(self, query: RankQuery, deadline: Deadline) -> RankAnswer:
        return self._funnel.rank(query, deadline)

    def close(self) -> None:
        self._worker.shutdown(wait=True)


def _invalid(error: RequestError) -> status_pb2.Status:
    violation = error_details_pb2.BadRequest.FieldViolation(
        field=error.field, description=str(error).removeprefix(f"{error.field}: ")
    )
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    return status_pb2.Status(code=code_pb2.INVALID_ARGUMENT, message=str(error), details=[detail])
