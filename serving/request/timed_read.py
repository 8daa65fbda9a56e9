"""A request is waited for so long and no longer: a call that never sends one would take one of the process's calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from serving.native.native_call import NativeCall
from serving.request.message_bounds import NO_REQUEST

NOTHING = "the call ended without a request; send one"
Handle = Callable[[Any, grpc.aio.ServicerContext], Awaitable[Any]]
Admit = Callable[[grpc.aio.ServicerContext], Awaitable[None]]


async def anybody(context: grpc.aio.ServicerContext) -> None:
    """Lets every call in."""


async def read_within(seconds: float, context: grpc.aio.ServicerContext) -> Any:
    """What was sent, or EOF. Raises AbortError, DEADLINE_EXCEEDED to the caller, where nothing is for so long.

    The status ends the read. To cancel it instead would free what gRPC still writes to.
    """
    if isinstance(context, NativeCall) and context.has_message:
        return await context.read()
    ended: list[asyncio.Task[Any]] = []

    def end() -> None:
        why = f"no request came for {seconds:g} s (serve.max_deadline_ms); send it with the call"
        ended.append(asyncio.ensure_future(context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, why)))

    timer = asyncio.get_running_loop().call_later(seconds, end)
    try:
        sent = await context.read()
    finally:
        timer.cancel()
        if ended:
            await ended[0]
    return sent


class TimedServer:
    """Stands for `server` where a service of calls with one request is added. Each is taken as a stream of one, and
    read within so many `seconds`, once `admit` has let it in. Methods are found by name
    (serving/request/by_name.py)."""

    def __init__(self, server: grpc.aio.Server, seconds: float, admit: Admit = anybody) -> None:
        self._server, self._seconds, self._admit = server, seconds, admit

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Generated code gives the same handlers once more by name; those are taken."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler]) -> None:
        """All of one service."""
        timed = {name: self._timed(handler) for name, handler in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, timed),))

    def _timed(self, handler: grpc.RpcMethodHandler) -> grpc.RpcMethodHandler:
        parse, written = handler.request_deserializer or bytes, handler.response_serializer
        answer: Handle = handler.unary_stream or handler.unary_unary

        async def handle(_: object, context: grpc.aio.ServicerContext) -> Any:
            await self._admit(context)
            sent = await read_within(self._seconds, context)
            try:
                request = parse(sent)
            except (DecodeError, TypeError):
                why = NOTHING if sent is grpc.aio.EOF else NO_REQUEST
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, why)
            return await answer(request, context)

        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(handle, None, written)
        return grpc.stream_unary_rpc_method_handler(handle, None, written)
