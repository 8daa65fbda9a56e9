"""One process that serves one bundle over gRPC: ranking, health, reflection, graceful stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
import uvloop
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from contracts.behind_others import behind_others
from contracts.config.stages import Serve
from contracts.errors import SluiceError
from models.compiled import kernels
from serving.access.caller_name import TENANT, caller_name
from serving.access.doors import NO_DOORS, Doors, address, is_loopback
from serving.access.gate import AUTHORIZATION, Gate
from serving.access.interceptor import AccessInterceptor
from serving.access.role import CATALOG_SERVICE, EVENTS_SERVICE, RANKING_SERVICE
from serving.access.tls import server_credentials
from serving.admission.standing_queue import LONGEST
from serving.batches.open_calls import OpenCalls
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.catalog_servicer import CatalogServicer
from serving.catalogue.catalogue import Catalogue
from serving.counter_snapshots.kept_counters import followed
from serving.events.event_room import EventRoom
from serving.item_counters.counter_state import NO_COUNTERS, CounterState
from serving.metrics.request_observer import RequestObserver, Watched, observer_of_process, watch
from serving.native import native_library
from serving.native.grpc_server import grpc_server
from serving.native.native_server import NativeServer, RankingGate
from serving.request import message_bounds
from serving.request.by_name import ByName
from serving.request.timed_read import TimedServer
from serving.response_log.ledger import Served
from serving.response_log.response_log import ResponseLog
from serving.server.bundle_health import BundleHealth, bundle_age
from serving.server.entry import METHODS, add_to_server
from serving.server.gone_callers import leave_out_gone_callers
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from serving.start.mapped_pages import read_ahead
from serving.start.warm_up import warm_up
from serving.users.online_users import OnlineUsers
from serving.users.stored_users import stored_users

GRACE_SECONDS = 5.0
SWITCH_SECONDS = 0.0005  # the event loop waits no longer for a busy funnel's turn of the interpreter
TAKE_IN_SECONDS, QUIET_SECONDS = 1.0, 0.1
KEEP_SECONDS = 10.0  # of a stop, until when counters may be kept: who has not ended after 15 is killed
MOST_CALLS = 64  # times the queue: what is beyond gRPC refuses by itself, before there is any work with it
MOST_OF_ONE = 0.25  # of these from one connection, beyond which gRPC reads none of its calls
RANKED = ("", RANKING_SERVICE)  # services whose health is that of the ranking
KEEPALIVE_SECONDS, PATIENCE_SECONDS = 10.0, 15.0  # a caller that reads nothing, not even a ping, is let go
log = logging.getLogger("sluice.serving")


class Signs(NamedTuple):
    """What tells for how many seconds all that rank have hung, else 0, and the mean seconds that one run takes;
    `deadline` is how many a call without one may take."""

    stuck: Callable[[], float]
    service: Callable[[], float]
    deadline: float


OnReady = Callable[[str, int, Signs], None]  # the version that is served, and on which port


@dataclass(frozen=True)
class ServerSettings:
    """`answers` is the folder of the response log, None for none. `connection_seconds` 0 takes the port for this
    process alone; otherwise the port is shared with other workers and with successors, and every connection is asked to
    come again after so long, without harm to its requests: so a process that is replaced is left by its callers (see
    serving/server/port_takeover.py). `doors` say who may come in. `fresh` is the folder of what changes between
    bundles, None where nothing does. `user_store` is where users of a later day are: the address of a Redis, or a
    folder, None for that of `fresh`; `event_stream` the address of a Redis whose stream brings events, None without.
    `balanced`: all calls come through the balancer of `sluice serve`. `compared`: another process has just compared
    the bundle's files with their checksums.
    """

    host: str = "127.0.0.1"
    port: int = 0
    answers: Path | None = None
    connection_seconds: float = 0.0
    doors: Doors = NO_DOORS
    fresh: Path | None = None
    user_store: str | None = None
    event_stream: str | None = None
    balanced: bool = False
    compared: bool = False

    @property
    def channel_options(self) -> list[tuple[str, int]]:
        """gRPC's words for it."""
        patience = round(PATIENCE_SECONDS * 1000)
        alive = [("grpc.keepalive_time_ms", round(KEEPALIVE_SECONDS * 1000)),
                 ("grpc.keepalive_timeout_ms", patience), ("grpc.http2.ping_timeout_ms", patience)]
        if not self.connection_seconds:
            # Without this, Linux lets a second process bind the same port and gRPC would spread requests over both.
            return [*alive, ("grpc.so_reuseport", 0)]
        return [*alive, ("grpc.so_reuseport", 1),
                ("grpc.max_connection_age_ms", round(self.connection_seconds * 1000))]


def needs_newer(settings: ServerSettings) -> bool:
    """The system's library of gRPC, years old perhaps, meets this machine's callers or as told, and does no TLS."""
    trusted = settings.balanced or is_loopback(settings.host) or native_library.is_wanted()
    return settings.doors.tls is not None or not trusted


class Server:
    """One bundle on one port.

    SIGTERM or SIGINT stop it: health and readiness turn NOT_SERVING, what has arrived is taken in (up to 1 s), what
    still comes is refused (up to 1 s), the port closes, running requests finish (up to 5 s), and what is fresh is kept.
    """

    def __init__(
        self, bundle: LoadedBundle, settings: ServerSettings, answers: ResponseLog | None,
        catalogue: Catalogue | None = None,
    ) -> None:
        self._settings, self._catalogue = settings, catalogue
        most = MOST_CALLS * bundle.settings.serve.max_queue
        options = [*settings.channel_options, *message_bounds.channel_options(bundle.settings.serve),
                   ("grpc.max_concurrent_streams", round(MOST_OF_ONE * most))]
        gate = Gate(settings.doors.access) if settings.doors.access else None
        self._credentials = server_credentials(settings.doors.tls) if settings.doors.tls else None
        self._server = grpc_server(options, most, [AccessInterceptor(gate)] if gate else [],
                                   needs_newer(settings), self._ranking_gate(bundle.settings.serve))
        self._counters = behind_others(partial(followed, bundle, settings.fresh)) if settings.fresh else None
        if self._counters is not None:
            bundle = replace(bundle, live=self._counters.follower.columns)
        funnel = behind_others(partial(Funnel, bundle))
        warm_up(funnel, bundle)
        self.observer, self._answers, self._manifest = observer_of_process(bundle), answers, bundle.manifest
        serve, who = bundle.settings.serve, caller_name(gate, settings.balanced)
        self._events = EventRoom(settings.fresh, bundle.event_features, serve, self.observer.recorded, who,
                                 settings.event_stream, self.observer.was_late, self.observer.refused_events)
        self._catalog = CatalogServicer(catalogue, serve, who, self._counter_state)
        self._stored = stored_users(settings.user_store, settings.fresh, bundle)
        users = OnlineUsers(self._stored, self._events.users) if self._stored else self._events.users
        self._servicer = RankingServicer(funnel, bundle.manifest, serve, answers, gate, self.observer, users, who)
        if catalogue is not None:
            catalogue.follower.lulls = self._servicer.engine.lulls
        if self._counters is not None:
            self._counters.follower.lulls = self._servicer.engine.lulls
            self._counters.start()
        self._health = BundleHealth(bundle.manifest, answers, self._servicer.load, gate, who)
        self._calls = OpenCalls(most, who)
        self._stopping = asyncio.Event()

    async def run(self, on_ready: Callable[[int], None]) -> None:
        """Raises SluiceError when the port is taken."""
        leave_out_gone_callers()
        self._add_services()
        bound = await self._listen()
        tasks = [asyncio.create_task(self._health.watch_answers()),
                 asyncio.create_task(self._health.watch_ranking(RANKED, self.signs.stuck))]
        if self._stored is not None:
            await self._stored.look()
            tasks.append(asyncio.create_task(self._stored.follow()))
        for service in RANKED:
            self._health.set(service, health_pb2.HealthCheckResponse.SERVING)
        tasks.append(asyncio.create_task(watch(self.observer, self._watched)))
        on_ready(bound)
        await self._stopping.wait()
        for task in tasks:
            task.cancel()
        await self._stop()

    @property
    def _watched(self) -> Watched:
        stored = self._stored
        return Watched(self._manifest, lambda: self._servicer.queue, self._answers,
                       self._catalogue.state if self._catalogue else None, (lambda: stored.state) if stored else None,
                       self._counter_state if self._counters else None)

    @property
    def signs(self) -> Signs:
        """Of what ranks."""
        engine = self._servicer.engine
        return Signs(lambda: engine.stuck, lambda: engine.service, self._servicer.default_seconds)

    def _ranking_gate(self, serve: Serve) -> RankingGate | None:
        """None where answers are to become simpler instead: no queue would stand behind it."""
        tokens = self._settings.doors.access is not None
        return None if serve.overload == "degrade" else RankingGate(
            RANKING_SERVICE, METHODS, AUTHORIZATION if tokens else TENANT, LONGEST, serve.seconds(None), tokens,
            lambda: self._servicer.engine.service, lambda *refused: self._servicer.gate_refused(*refused))

    def _counter_state(self) -> CounterState:
        return self._counters.follower.state if self._counters else NO_COUNTERS

    def _add_services(self) -> None:
        add_to_server(self._servicer, self._server, self._calls.take)
        timed = TimedServer(self._server, self._servicer.patience, self._calls.take)
        self._events.add_to(timed)
        self._catalog.add_to(timed)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, timed)
        if self._settings.doors.reflects(self._settings.host):
            names = (RANKING_SERVICE, CATALOG_SERVICE, EVENTS_SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
            servicer = reflection.aio.ReflectionServicer(names)
            reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, ByName(self._server))

    async def _listen(self) -> int:
        host, port = self._settings.host, self._settings.port
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._stopping.set)
        try:
            bound = self._bind(address(host, port))
        except RuntimeError:
            raise SluiceError(
                f"port {port} on {host} is taken, perhaps by another `sluice serve`, or {host} is not this machine's; "
                "stop it or give --port, or another --host"
            ) from None
        await self._server.start()
        return bound

    def _bind(self, where: str) -> int:
        if self._credentials is None:
            return self._server.add_insecure_port(where)
        assert not isinstance(self._server, NativeServer)  # which does no TLS: `needs_newer`
        return self._server.add_secure_port(where, self._credentials)

    async def _stop(self) -> None:
        end = time.monotonic() + KEEP_SECONDS
        self._health.stop()
        self.observer.stopping()
        await self._take_in()
        self._servicer.refusing = True
        await self._take_in()
        await self._server.stop(GRACE_SECONDS)
        self._catalog.close()
        self._servicer.close(GRACE_SECONDS)
        self._events.close()
        if self._counters is not None:
            self._counters.close(max(end - time.monotonic(), 0.0))
        if self._stored is not None:
            await self._stored.close()

    async def _take_in(self) -> None:
        """Waits until no request is handed over for a while: a stopping gRPC cancels those that it still holds."""
        seen, end = -1, time.monotonic() + TAKE_IN_SECONDS
        while self._servicer.taken != seen and time.monotonic() < end:
            seen = self._servicer.taken
            await asyncio.sleep(QUIET_SECONDS)


def run(
    folder: Path, settings: ServerSettings, on_ready: OnReady, gate: Callable[[], None] | None = None,
) -> None:
    """Loads, checks parity, warms up, passes the `gate` where there is one, serves. One intra-op thread: more of them
    stall beside a busy neighbour. Kernels that a host has not compiled yet are compiled before anybody waits."""
    torch.set_num_threads(1)
    sys.setswitchinterval(SWITCH_SECONDS)
    kernels.library()
    bundle = behind_others(lambda: LoadedBundle.load(folder, compared=settings.compared))
    behind_others(partial(read_ahead, folder))
    served = Served(bundle.version, bundle.manifest.created)
    answers = ResponseLog(settings.answers, served) if settings.answers else None
    with ExitStack() as open_:
        if answers:
            open_.enter_context(closing(answers))
        if settings.fresh:
            catalogue = open_.enter_context(closing(behind_others(partial(Catalogue, bundle, folder, settings.fresh))))
            bundle = catalogue.bundle
            catalogue.follower.start()
        observer = uvloop.run(_serve(bundle, settings, answers, catalogue if settings.fresh else None, on_ready, gate))
    observer.close()  # last: it may wait for a collector of traces


async def _serve(
    bundle: LoadedBundle, settings: ServerSettings, answers: ResponseLog | None, catalogue: Catalogue | None,
    on_ready: OnReady, gate: Callable[[], None] | None,
) -> RequestObserver:
    """Who has looked on, once it is stopped."""
    def ready(port: int) -> None:
        log.info("serving %s, published %.0f s ago, %s %s", bundle.version, bundle_age(bundle.manifest),
                 "to the balancer on" if settings.balanced else "on", address(settings.host, port))
        on_ready(bundle.version, port, server.signs)

    server = Server(bundle, settings, answers, catalogue)
    if gate is not None:
        await asyncio.to_thread(gate)
    await server.run(ready)
    return server.observer
