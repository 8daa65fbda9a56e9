"""A gRPC server whose generated services refuse what is too large before they parse it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc

from serving.request.message_bounds import too_large

Answering = Callable[[Any, grpc.aio.ServicerContext], Awaitable[Any]]


class SizedServer:
    """Stands for `server` where generated code adds a service of calls with one request and one answer; a message of
    more than `largest` bytes is RESOURCE_EXHAUSTED, as gRPC has it for those beyond its own limit."""

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
            if isinstance(request, TooLarge):
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, too_large(request.size, self._largest))
            return await answer(request, context)

        return grpc.unary_unary_rpc_method_handler(
            handle, lambda sent: TooLarge(len(sent)) if len(sent) > self._largest else parse(sent),
            handler.response_serializer)


class TooLarge:
    """In place of a request: `size` in bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
