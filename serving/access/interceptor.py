"""The gate before every method of a gRPC server, refusing calls before their requests are read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import grpc

from serving.access.callers import UnknownCaller
from serving.access.gate import Forbidden, Gate

Continuation = Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler]]


class AccessInterceptor(grpc.aio.ServerInterceptor):
    """UNAUTHENTICATED for a caller that is not known, PERMISSION_DENIED for one that lacks the role."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler:
        details = handler_call_details
        try:
            self._gate.admit(details.method, details.invocation_metadata or ())
        except UnknownCaller as error:
            return _refusal(grpc.StatusCode.UNAUTHENTICATED, str(error))
        except Forbidden as error:
            return _refusal(grpc.StatusCode.PERMISSION_DENIED, str(error))
        return await continuation(details)


def _refusal(code: grpc.StatusCode, why: str) -> grpc.RpcMethodHandler:
    """Taken as a stream, a call is refused without its request (serving/server/entry.py)."""
    async def refuse(_: Any, context: grpc.aio.ServicerContext) -> NoReturn:
        await context.abort(code, why)
        raise AssertionError("abort raises")

    return grpc.stream_unary_rpc_method_handler(refuse)
