"""The console's question to the server beside it: a user's slate with its reasons, and why not another item.

It goes over gRPC as any caller's does, with the token that was typed, and is not logged. The channel is a blocking one
in a thread: the event loop of the side port may share its process with the server's, and gRPC knows one loop a process.
"""

from __future__ import annotations

from functools import cached_property, partial

import grpc
from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from contracts.errors import RequestError
from contracts.shown import short
from serving.access.doors import is_loopback
from serving.batches.batch_turns import BatchTurns
from serving.batches.places import NoPlace
from serving.gateway import body, call_options, failures
from serving.gateway.json_messages import to_json
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.delivery import RECONNECT

BODY = body.BodyBounds()
SECONDS, MOST_SECONDS = 3.0, 20.0
AT_ONCE = 8  # questions, each in a thread; not those of the pool, in which metrics are read
NO_ANSWER = "the console asks servers in plain text alone; ask through `sluice gateway`, or `sluice rank --why-not`"


class Lookup:
    """`target` is HOST:PORT of the server once it is known, "" before, and for one that wants TLS. One that is
    `elsewhere` may be another machine, which is told no token unless it is on loopback."""

    def __init__(self, elsewhere: bool = False) -> None:
        self.target, self._elsewhere = "", elsewhere

    @cached_property
    def _stub(self) -> sluice_pb2_grpc.RankingStub:
        return sluice_pb2_grpc.RankingStub(grpc.insecure_channel(self.target, options=RECONNECT))

    @cached_property
    def _turns(self) -> BatchTurns:
        return BatchTurns()

    @cached_property
    def _threads(self) -> CapacityLimiter:
        return CapacityLimiter(AT_ONCE)

    async def why_not(self, request: Request) -> Response:
        """POST of a WhyNotRequest as JSON, and called so: no page of another site gets as far as that."""
        if not self.target:
            return failures.refused("UNAVAILABLE", NO_ANSWER)
        try:
            body.check_type(request)
            message = await body.message(
                await body.read(request, BODY), pb.WhyNotRequest(), self._turns, body.caller(request))
            seconds = min(call_options.seconds(request.headers) or SECONDS, MOST_SECONDS)
            metadata = self.metadata(request)
        except body.NotTaken as error:
            return failures.of_body(error)
        except RequestError as error:
            return failures.refused("INVALID_ARGUMENT", short(str(error)))
        except NoPlace as error:
            return failures.refused("RESOURCE_EXHAUSTED", str(error))
        return await to_thread.run_sync(partial(self._ask, message, seconds, metadata), limiter=self._threads)

    def metadata(self, request: Request) -> tuple[tuple[str, str], ...]:
        """What of the headers goes along. Raises RequestError."""
        tells = not self._elsewhere or is_loopback(self.target.rpartition(":")[0])
        return tuple(one for one in call_options.metadata(request.headers) if tells or one[0] != "authorization")

    def _ask(self, message: pb.WhyNotRequest, seconds: float, metadata: tuple[tuple[str, str], ...]) -> Response:
        try:
            return JSONResponse(to_json(self._stub.WhyNot(message, timeout=seconds, metadata=metadata)))
        except grpc.RpcError as error:
            return failures.of_call(error)
