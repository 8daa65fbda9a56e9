"""A gRPC server whose generated services refuse what is too large, or no request, with a status that says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError

from serving.request.message_bounds import NO_REQUEST, too_large

Answering = Callable[[Any, grpc.aio.ServicerContext], Awaitable[Any]]


class Refused(NamedTuple):
    """In place of a request."""

    code: grpc.StatusCode
    why: str


class SizedServer:
    """Stands for `server` where generated code adds a service of calls with one request and one answer; a message of
    more than `largest` bytes is RESOURCE_EXHAUSTED, as gRPC has it for those beyond its own limit, and is not parsed.
    """

    def __init__(self, server: grpc.aio.Server, largest: int) -> None:
        self._server, self._largest = server, largest

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Generated code gives the same handlers once more by name; those are taken."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler]) -> None:
        """All of one service."""
        sized = {name: self._sized(handler) for name, handler in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, sized),))
        self._server.add_registered_method_handlers(service, sized)

    def _sized(self, handler: grpc.RpcMethodHandler) -> grpc.RpcMethodHandler:
        parse, answer = handler.request_deserializer, handler.unary_unary

        async def handle(request: Any, context: grpc.aio.ServicerContext) -> Any:
            if isinstance(request, Refused):
                await context.abort(request.code, request.why)
            return await answer(request, context)

        def read(sent: bytes) -> Any:
            if len(sent) > self._largest:
                return Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, too_large(len(sent), self._largest))
            try:
                return parse(sent)
            except DecodeError:
                return Refused(grpc.StatusCode.INVALID_ARGUMENT, NO_REQUEST)

        return grpc.unary_unary_rpc_method_handler(handle, read, handler.response_serializer)
