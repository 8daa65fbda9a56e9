"""gRPC's health service, which also says what is served: version and age of the bundle, and whether answers are logged.

The figures are trailing metadata of `Check`: sluice-bundle-version, sluice-bundle-age-seconds, sluice-floor-ms (the
deadline from which on a call gets a search of the items), sluice-waiting (requests in the queue), sluice-queue-ms (how
long the oldest has waited), sluice-turned-away (calls that were refused unread); with a response log also
sluice-answers-waiting, sluice-answers-lost, sluice-answers-restarts (how often the writing thread has died) and, while
writing fails, sluice-answer-log with the cause. The service `sluice.v1.AnswerLog` is NOT_SERVING while answers cannot
be written; requests are answered on, so the others stay. They are NOT_SERVING while all that rank hang.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from contracts.bundle.bundle import Manifest
from contracts.shown import short
from serving.access.caller_name import Who, caller_name
from serving.access.callers import UnknownCaller
from serving.access.gate import Gate
from serving.access.role import SEES_FIGURES
from serving.batches.places import NoPlace, Places
from serving.response_log.response_log import ResponseLog

RESPONSE_LOG_SERVICE = "sluice.v1.AnswerLog"
WATCH_SECONDS = 0.5
STUCK_SECONDS = 5.0  # in which no request is ranked though all that rank are at it
MOST_WATCHING = 64


def bundle_age(manifest: Manifest) -> float:
    """Seconds since the bundle was published."""
    return (datetime.now(UTC) - manifest.created).total_seconds()


class BundleHealth(health_pb2_grpc.HealthServicer):
    """`answers` is the response log, None where nothing is logged; `load` tells floor and queue. With a `gate` the
    status is anybody's, and the figures are for the roles catalogue and administration. `who` names callers. What is
    called of it belongs to one event loop, and waits for no caller."""

    def __init__(
        self, manifest: Manifest, answers: ResponseLog | None, load: Callable[[], Mapping[str, str]] = dict,
        gate: Gate | None = None, who: Who | None = None,
    ) -> None:
        self._manifest, self._answers, self._load, self._gate = manifest, answers, load, gate
        self._who = who or caller_name(gate)
        self._watching = Places(MOST_WATCHING, "calls watch the status", "ask Check")
        self._statuses = {"": health_pb2.HealthCheckResponse.SERVING}
        self._changed: set[asyncio.Event] = set()  # one of each watcher: there may be another status than it was told
        self._stopping = False

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: grpc.aio.ServicerContext
    ) -> health_pb2.HealthCheckResponse:
        if self._may_see_figures(context):
            context.set_trailing_metadata(tuple(self.figures().items()))
        if request.service not in self._statuses:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        return health_pb2.HealthCheckResponse(status=self._statuses[request.service])

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: grpc.aio.ServicerContext) -> None:
        """Anybody's, and without an end: RESOURCE_EXHAUSTED above MOST_WATCHING, and above a caller's share of them.
        Who takes an answer late is told the latest status then."""
        who = self._who(context)
        try:
            self._watching.take(who)
        except NoPlace as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        changed, said = asyncio.Event(), None
        self._changed.add(changed)
        try:
            while True:
                changed.clear()
                status = self._statuses.get(request.service, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
                if status != said:
                    await context.write(health_pb2.HealthCheckResponse(status=status))
                    said = status
                await changed.wait()
        finally:
            self._changed.remove(changed)
            self._watching.leave(who)

    def set(self, service: str, status: health_pb2.HealthCheckResponse.ServingStatus) -> None:
        """From now on; once the server is stopping, no more."""
        if not self._stopping:
            self._statuses[service] = status
            for changed in self._changed:
                changed.set()

    def stop(self) -> None:
        """Nothing is served any more."""
        for service in list(self._statuses):
            self.set(service, health_pb2.HealthCheckResponse.NOT_SERVING)
        self._stopping = True

    def _may_see_figures(self, context: grpc.aio.ServicerContext) -> bool:
        if self._gate is None:
            return True
        try:
            return bool(self._gate.caller(context.invocation_metadata() or ()).roles & SEES_FIGURES)
        except UnknownCaller:
            return False

    def figures(self) -> dict[str, str]:
        """The trailing metadata of `Check`."""
        found = {
            "sluice-bundle-version": self._manifest.version,
            "sluice-bundle-age-seconds": f"{bundle_age(self._manifest):.0f}",
            **self._load(),
        }
        if self._answers is None:
            return found
        state = self._answers.state
        found |= {"sluice-answers-waiting": str(state.waiting), "sluice-answers-lost": str(state.lost),
                  "sluice-answers-restarts": str(state.restarts)}
        cause = short(state.cause, 400).encode("ascii", "replace").decode()  # metadata holds nothing else
        return found | ({"sluice-answer-log": cause} if cause else {})

    async def watch_ranking(self, services: Sequence[str], stuck: Callable[[], float]) -> None:
        """Keeps the status of the services current, until cancelled; `stuck` tells for how long nothing has moved."""
        status, said = health_pb2.HealthCheckResponse, True
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                moves = stuck() < STUCK_SECONDS
                if moves != said:
                    said = moves
                    for service in services:
                        self.set(service, status.SERVING if moves else status.NOT_SERVING)
                await asyncio.sleep(WATCH_SECONDS)

    async def watch_answers(self) -> None:
        """Keeps the response log's thread alive and its status current, until cancelled."""
        with contextlib.suppress(asyncio.CancelledError):
            while self._answers is not None:
                status = health_pb2.HealthCheckResponse
                self._answers.tend()
                writes = not self._answers.state.cause
                self.set(RESPONSE_LOG_SERVICE, status.SERVING if writes else status.NOT_SERVING)
                await asyncio.sleep(WATCH_SECONDS)
