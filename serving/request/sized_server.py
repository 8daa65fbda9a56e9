"""A gRPC server whose generated services refuse what is too large, or no request, with a status that says so."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from serving.request.batch_turns import BatchTurns, TooManyBatches
from serving.request.message_bounds import NO_REQUEST, OutOfBounds, fields_of, too_large
from serving.request.timed_read import TimedServer

Answering = Callable[[Any, grpc.aio.ServicerContext], Awaitable[Any]]


class SizedServer:
    """Stands for `server` where generated code adds a service of calls with one request and one answer; a message of
    more than `largest` bytes is RESOURCE_EXHAUSTED, as gRPC has it for those beyond its own limit, and is not parsed.
    One of more than `most` entries is INVALID_ARGUMENT, not parsed either. All others are parsed in their turns.
    """

    def __init__(
        self, server: grpc.aio.Server | TimedServer, largest: int, turns: BatchTurns | None = None,
        most: int = sys.maxsize,
    ) -> None:
        self._server, self._largest, self._turns, self._most = server, largest, turns or BatchTurns(), most

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Generated code gives the same handlers once more by name; those are taken."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler]) -> None:
        """All of one service."""
        sized = {name: self._sized(handler) for name, handler in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, sized),))
        self._server.add_registered_method_handlers(service, sized)

    def _sized(self, handler: grpc.RpcMethodHandler) -> grpc.RpcMethodHandler:
        parse, answer = handler.request_deserializer, handler.unary_unary

        async def handle(sent: bytes, context: grpc.aio.ServicerContext) -> Any:
            if len(sent) > self._largest:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, too_large(len(sent), self._largest))
            try:
                request = await self._turns.take(partial(self._parsed, parse, sent))
            except DecodeError:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, NO_REQUEST)
            except OutOfBounds as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            except TooManyBatches as error:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
            return await answer(request, context)

        return grpc.unary_unary_rpc_method_handler(handle, None, handler.response_serializer)

    def _parsed(self, parse: Callable[[bytes], Any], sent: bytes) -> Any:
        if fields_of(sent, self._most) > self._most:
            raise OutOfBounds("the batch", f"has more than {self._most} entries, as many as the larger of "
                                           "serve.max_candidates and serve.max_events allows; send fewer")
        return parse(sent)
