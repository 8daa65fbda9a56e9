"""The gRPC server that a process has: gRPC's C++ one where it can be had and will do, else `grpc.aio`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import grpc

from serving.native.native_library import library
from serving.native.native_server import NativeServer, RankingGate

GrpcServer: TypeAlias = NativeServer | grpc.aio.Server


def grpc_server(
    options: Sequence[tuple[str, int]] = (), most: int | None = None,
    interceptors: Sequence[grpc.aio.ServerInterceptor] = (), newer: bool = False,
    gate: RankingGate | None = None,
) -> GrpcServer:
    """At most `most` calls are open at once; `newer`: not by the system's library. `grpc.aio` has no gate."""
    if newer or library() is None:
        return grpc.aio.server(options=options, maximum_concurrent_rpcs=most, interceptors=interceptors)
    return NativeServer(options, most, interceptors, gate)
