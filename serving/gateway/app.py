"""HTTP/JSON in front of one gRPC server: the same calls, checks, deadlines and tokens, for callers without gRPC.

    POST /v1/rank, /v1/score, /v1/why-not       a JSON object each (serving/gateway/json_messages.py)
    POST /v1/events                             what happened to what was shown
    POST /v1/catalog/upsert, /withdraw, ...     changes of items between bundles, and /v1/catalog/status
    GET  /openapi.json, /                       what they take and answer
    GET  /healthz, /readyz                      the gateway itself; the server behind it

A caller who hangs up ends the call. Bodies are bounded (serving/gateway/body.py): what is larger is refused with 413,
what comes too slowly with 408.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from contracts.errors import RequestError
from contracts.logs import trace_id
from contracts.shown import short
from serving.batches.batch_turns import BatchTurns
from serving.batches.places import NoPlace
from serving.gateway import body, call_options, failures, openapi
from serving.gateway.json_messages import to_json
from serving.gateway.page import page
from serving.metrics.call_log import CallLog, call_log_of_process
from serving.proto import sluice_pb2 as pb
from serving.server.delivery import RECONNECT

SERVICES = [pb.DESCRIPTOR.services_by_name[name] for name in ("Ranking", "Events", "Catalog")]
RANKING = SERVICES[0].full_name
READY_SECONDS = 1.0
PATIENCE = 30.0  # seconds; six times what `serve.max_deadline_ms` is unless it is set
OWN_SITE = ("none", "same-origin")  # as a browser says whose page asks; other callers say nothing


@dataclass(frozen=True)
class Upstream:
    """The gRPC server: HOST:PORT, with `credentials` where it wants TLS; `bodies` are what it is sent, `patience` the
    seconds that it is waited for where a caller sets no deadline."""

    target: str
    credentials: grpc.ChannelCredentials | None = None
    bodies: body.BodyBounds = field(default_factory=body.BodyBounds)
    patience: float = PATIENCE

    def channel(self) -> grpc.aio.Channel:
        if self.credentials is None:
            return grpc.aio.insecure_channel(self.target, options=RECONNECT)
        return grpc.aio.secure_channel(self.target, self.credentials, options=RECONNECT)


def gateway(upstream: Upstream) -> Starlette:
    """An ASGI application."""
    described, calls = openapi.description(SERVICES, version("sluice")), call_log_of_process()

    @asynccontextmanager
    async def connected(app: Starlette) -> AsyncIterator[None]:
        async with upstream.channel() as channel:
            app.state.channel = channel
            app.state.turns = {service.full_name: BatchTurns() for service in SERVICES}
            yield
            for turns in app.state.turns.values():
                turns.close()

    async def ready(request: Request) -> Response:
        return await _ready(request.app.state.channel)

    routes = [Route(openapi.path_of(method), _forward(method, upstream, calls), methods=["POST"])
              for service in SERVICES for method in service.methods]
    routes += [Route("/healthz", lambda _: JSONResponse({"status": "SERVING"})), Route("/readyz", ready),
               Route("/openapi.json", lambda _: JSONResponse(described)),
               Route("/", lambda _: HTMLResponse(page(described)))]
    return Starlette(routes=routes, lifespan=connected)


def _forward(
    method: MethodDescriptor, upstream: Upstream, calls: CallLog | None
) -> Callable[[Request], Awaitable[Response]]:
    taken, given = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    service = method.containing_service.full_name
    full = f"/{service}/{method.name}"

    async def answered(request: Request) -> Response:
        if request.headers.get("sec-fetch-site", OWN_SITE[0]) not in OWN_SITE:
            return failures.refused("PERMISSION_DENIED", "a page of another site may not ask here; ask from its server")
        try:
            message = await body.message(
                await body.read(request, upstream.bodies), taken(), request.app.state.turns[service],
                body.caller(request))
            seconds, metadata = call_options.seconds(request.headers), call_options.metadata(request.headers)
        except RequestError as error:
            return failures.refused("INVALID_ARGUMENT", str(error), {error.field: error.problem})
        except body.NotTaken as error:
            return failures.of_body(error)
        except NoPlace as error:
            return failures.refused("RESOURCE_EXHAUSTED", str(error))
        call = request.app.state.channel.unary_unary(
            full, request_serializer=taken.SerializeToString, response_deserializer=given.FromString)
        request.state.request_id = getattr(message, "request_id", "")
        patience = upstream.patience if seconds is None else None  # the server's default counts only where none is sent
        return await _answer(call(message, timeout=seconds, metadata=metadata), request, patience)

    async def forward(request: Request) -> Response:
        begun, request.state.request_id = time.perf_counter(), ""
        answer = await answered(request)
        if calls is not None:
            calls.ended(request.url.path, str(answer.status_code), time.perf_counter() - begun,
                        short(request.state.request_id), trace_id(request.headers.get("traceparent", "")))
        return answer

    return forward


async def _answer(
    call: grpc.aio.UnaryUnaryCall[Message, Message], request: Request, patience: float | None
) -> Response:
    """What the server answers; a caller who hangs up before cancels it, and so does the end of `patience` (seconds)."""
    answer = asyncio.ensure_future(_awaited(call, request))
    gone = asyncio.ensure_future(_hung_up(request))
    try:
        ended, _ = await asyncio.wait((answer, gone), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        cancelled = not answer.done() and call.cancel()
        heard = await answer
        if cancelled and not ended:
            return failures.refused("DEADLINE_EXCEEDED", f"the server gave no answer in {patience:g} s; send a "
                                                         "Grpc-Timeout to wait longer, or ask again later")
        return heard
    finally:
        gone.cancel()


async def _awaited(call: grpc.aio.UnaryUnaryCall[Message, Message], request: Request) -> Response:
    try:
        answer = await call
        request.state.request_id = getattr(answer, "request_id", "")
        return JSONResponse(to_json(answer))
    except grpc.aio.AioRpcError as error:
        return failures.of_call(error)
    except asyncio.CancelledError:
        return failures.refused("CANCELLED", "the caller hung up")


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _ready(channel: grpc.aio.Channel) -> Response:
    asked = health_pb2.HealthCheckRequest(service=RANKING)
    try:
        found = await health_pb2_grpc.HealthStub(channel).Check(asked, timeout=READY_SECONDS)
    except grpc.aio.AioRpcError as error:
        return failures.refused("UNAVAILABLE", error.details() or error.code().name)
    name = health_pb2.HealthCheckResponse.ServingStatus.Name(found.status)
    if found.status == health_pb2.HealthCheckResponse.SERVING:
        return JSONResponse({"status": name})
    return failures.refused("UNAVAILABLE", f"the server is {name}")
