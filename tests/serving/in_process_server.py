"""A real gRPC server in a thread of the test's own process: as on the wire, without a process to start."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from grpc_health.v1 import health_pb2_grpc

from serving.native.grpc_server import GrpcServer, grpc_server
from serving.proto import sluice_pb2_grpc
from serving.request.timed_read import Admit, TimedServer, anybody
from serving.server.bundle_health import BundleHealth
from serving.server.entry import add_to_server
from serving.server.servicer import RankingServicer


class InProcessServer:
    """`with InProcessServer(servicer, health) as server: ... server.target`. The health is watched while it runs.
    `made` makes gRPC's server."""

    def __init__(
        self, servicer: sluice_pb2_grpc.RankingServicer, health: BundleHealth | None = None,
        options: Sequence[tuple[str, int]] = (), also: Sequence[Callable[[Any], None]] = (),
        admit: Admit = anybody, port: int = 0, made: Callable[..., GrpcServer] = grpc_server,
    ) -> None:
        self._servicer, self._health, self._options, self._also = servicer, health, options, also
        self._admit, self._port, self._made = admit, port, made
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.target = ""

    def __enter__(self) -> InProcessServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(20)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    async def _start(self) -> None:
        self._server = self._made(options=self._options)
        if isinstance(self._servicer, RankingServicer):
            add_to_server(self._servicer, self._server, self._admit)
        else:
            sluice_pb2_grpc.add_RankingServicer_to_server(self._servicer, self._server)
        for add in self._also:
            add(self._server)
        if self._health is not None:
            health_pb2_grpc.add_HealthServicer_to_server(self._health, TimedServer(self._server, 20.0, self._admit))
            self._watch = asyncio.ensure_future(self._health.watch_answers())
        self.target = f"127.0.0.1:{self._server.add_insecure_port(f'127.0.0.1:{self._port}')}"
        await self._server.start()

    async def _stop(self) -> None:
        if self._health is not None:
            self._watch.cancel()
        await self._server.stop(1.0)
