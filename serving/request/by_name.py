"""Methods of gRPC that are found by the name of a call, and are not registered.

For every registered method `grpc.aio` keeps a task that waits for a call of it, and with each call, whatever its
method, it begins to wait for all of them anew: a dozen methods make more than half of what a call costs the event loop
in Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import grpc


class ByName:
    """Stands for `server` where generated code adds a service."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """All of one service."""
        self._server.add_generic_rpc_handlers(handlers)

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler]) -> None:
        """The same once more."""
