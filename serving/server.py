"""One process that serves one bundle over gRPC: ranking, health, reflection, graceful stop."""

from __future__ import annotations

import asyncio
import gc
import signal
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import torch
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from contracts.errors import SluiceError
from serving.deadline import Deadline
from serving.funnel import Funnel
from serving.loaded_bundle import LoadedBundle
from serving.proto import sluice_pb2, sluice_pb2_grpc
from serving.query import RankQuery
from serving.servicer import RankingServicer

SERVICE = sluice_pb2.DESCRIPTOR.services_by_name["Ranking"].full_name
GRACE_SECONDS = 5.0
TAKE_IN_SECONDS, QUIET_SECONDS = 1.0, 0.1
# Without this, Linux lets a second process bind the same port and gRPC would spread the requests over both.
OPTIONS = [("grpc.so_reuseport", 0)]


def warm_up(funnel: Funnel, bundle: LoadedBundle) -> None:
    """First calls pay for lazy initialisation; garbage collection then leaves what was loaded alone."""
    users = [bundle.users.key(row) for row in range(min(20, len(bundle.users)))] or ["nobody"]
    for user in users:
        funnel.rank(RankQuery(user=user, limit=bundle.settings.serve.default_limit), Deadline(None))
    gc.collect()
    gc.freeze()


async def serve(bundle: LoadedBundle, host: str, port: int, on_ready: Callable[[int], None]) -> None:
    """Runs until SIGTERM or SIGINT; then health turns NOT_SERVING, what has arrived is taken in (up to 1 s), what still
    comes is refused (up to 1 s), the port closes, and running requests finish (up to 5 s).

    Raises SluiceError when the port is taken.
    """
    server = grpc.aio.server(options=OPTIONS)
    funnel = Funnel(bundle)
    warm_up(funnel, bundle)
    settings = bundle.settings.serve
    servicer = RankingServicer(funnel, settings.default_limit, settings.deadline_ms)
    sluice_pb2_grpc.add_RankingServicer_to_server(servicer, server)
    checks = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    try:
        bound = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError:
        raise SluiceError(
            f"port {port} on {host} is taken, perhaps by another `sluice serve`; stop it or give --port"
        ) from None
    await server.start()
    stopping = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopping.set)
    for service in ("", SERVICE):
        await checks.set(service, health_pb2.HealthCheckResponse.SERVING)
    on_ready(bound)
    await stopping.wait()
    await checks.enter_graceful_shutdown()
    await take_in(servicer)
    servicer.refusing = True
    await take_in(servicer)
    await server.stop(GRACE_SECONDS)
    servicer.close()


async def take_in(servicer: RankingServicer) -> None:
    """Waits until no request has been handed over for a while: a stopping gRPC cancels those that it still holds."""
    seen, end = -1, time.monotonic() + TAKE_IN_SECONDS
    while servicer.taken != seen and time.monotonic() < end:
        seen = servicer.taken
        await asyncio.sleep(QUIET_SECONDS)


def run(folder: Path, host: str, port: int, on_ready: Callable[[LoadedBundle, int], None]) -> None:
    """Loads, checks parity, serves. One intra-op thread: more of them stall beside a busy neighbour."""
    torch.set_num_threads(1)
    bundle = LoadedBundle.load(folder)
    asyncio.run(serve(bundle, host, port, lambda bound: on_ready(bundle, bound)))
