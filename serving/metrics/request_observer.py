"""Who looks on while requests are answered: told of every call once it has ended, so that no caller waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from contracts.bundle.bundle import Manifest
from contracts.logs import trace_id
from serving.bundle.loaded_bundle import LoadedBundle
from serving.item_counters.counter_state import CounterState
from serving.metrics.call_log import CallLog, call_log_of_process
from serving.metrics.metrics_folder import VARIABLE, is_on
from serving.request.query import PageAnswer, RankAnswer, slates_of
from serving.response_log.response_log import ResponseLog
from serving.users.circuit_breaker import StoreState

if TYPE_CHECKING:
    from serving.metrics.request_traces import RequestTraces
    from serving.metrics.running_sample import RunningSample
    from serving.metrics.serving_metrics import ServingMetrics

WATCH_SECONDS = 0.5
DRIFT_EVERY = 20  # looks
CARRIED = ("traceparent", "tracestate")
Caller = Mapping[str, str]
Told = TypeVar("Told")
UNKNOWN: Caller = {}
log = logging.getLogger("sluice.serving")


class EndedCall(NamedTuple):
    """`status` is gRPC's, `seconds` from arrival to answer, `answer` of `Rank` where it was sent in time; `caller` is
    what RequestObserver.caller has kept of the call."""

    method: str
    status: str
    seconds: float = 0.0
    answer: RankAnswer | PageAnswer | None = None
    request_id: str = ""
    caller: Caller = UNKNOWN


class Call(Protocol):
    """What gRPC knows of a call."""

    def invocation_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...


class RequestObserver:
    """Counts calls where there are `metrics`, makes spans of them where there are `traces`, lines of the log where
    there are `calls`, and keeps a `sample` of answers where the bundle says what to hold them against."""

    def __init__(
        self, metrics: ServingMetrics | None = None, traces: RequestTraces | None = None, calls: CallLog | None = None,
        sample: RunningSample | None = None,
    ) -> None:
        self.metrics, self.traces, self.calls, self.sample = metrics, traces, calls, sample
        self._failed = set[str]()

    def caller(self, call: Call) -> Caller:
        """What is kept of a call until it has ended."""
        return UNKNOWN if self.traces is None and self.calls is None else _carried(call.invocation_metadata() or ())

    def ended(self, call: EndedCall) -> None:
        """Once per call, whatever came of it. What fails here costs its own figure, not the call nor the others."""
        metrics, traces, calls, sample = self.metrics, self.traces, self.calls, self.sample
        if metrics is not None:
            self.kept("metrics of a call", partial(metrics.ended, call.method, call.status, call.seconds, call.answer))
        trace = None if traces is None else self.kept("traces of a call", partial(traces.ended, *call))
        if calls is not None:
            known = trace or trace_of(call.caller)
            line = partial(calls.ended, call.method, call.status, call.seconds, call.request_id, known)
            self.kept("the line of a call", line)
        if sample is not None and call.answer is not None:
            for slate in slates_of(call.answer):
                self.kept("the sample of a call", partial(sample.tell, slate))

    def refused(self, method: str, status: str, calls: int) -> None:
        """So many calls of which nothing else is known; there may be thousands a second, and none of them has a
        span."""
        if self.metrics is not None:
            self.kept("metrics of a call", partial(self.metrics.refused, method, status, calls))
        if self.calls is not None:
            for _ in range(calls):
                self.kept("the line of a call", partial(self.calls.ended, method, status, 0.0, "", ""))

    def kept(self, what: str, tell: Callable[[], Told]) -> Told | None:
        """What it returns. The first that one of them raises is told of: there may be hundreds a second."""
        try:
            return tell()
        except Exception as error:
            if what not in self._failed:
                self._failed.add(what)
                log.error("%s could not be kept; others of these are not told of", what, exc_info=error)
            return None

    def recorded(self, kinds: Sequence[str]) -> None:
        """Of events that are new, once they are on the disk."""
        if self.metrics is not None:
            self.kept("metrics of events", partial(self.metrics.freshness.recorded, kinds))

    def was_late(self) -> None:
        """Of a commit of events that took longer than their known time allows."""
        if self.metrics is not None:
            self.kept("metrics of events", self.metrics.freshness.was_late)

    def refused_events(self, by: str, events: int) -> None:
        """By a "call", or the "stream"."""
        if self.metrics is not None:
            self.kept("metrics of events", partial(self.metrics.freshness.refused, by, events))

    def stopping(self) -> None:
        """From now on nobody is to send this process a call; those under way are told of on."""
        if self.metrics is not None:
            self.kept("metrics of the stop", self.metrics.stopped)

    def close(self) -> None:
        """No call is told of any more; what is still to be sent of those before is sent, for a moment at most."""
        if self.traces is not None:
            self.traces.close()


def trace_of(caller: Caller) -> str:
    """The id of the trace that a call is part of, by its own words."""
    return trace_id(caller.get("traceparent", ""))


NOBODY = RequestObserver()


def _carried(metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
    return {key: str(value) for key, value in metadata if key in CARRIED}


def observer_of_process(bundle: LoadedBundle) -> RequestObserver:
    """As the environment says; `bundle` is served. Raises ConfigError where it says what cannot be."""
    metrics, traces, calls = _metrics(), _traces(bundle.version), call_log_of_process()
    if metrics is None or bundle.reference is None:
        return RequestObserver(metrics, traces, calls) if metrics or traces or calls else NOBODY
    from serving.metrics.running_sample import RunningSample

    return RequestObserver(metrics, traces, calls, RunningSample(bundle, bundle.reference))


def _metrics() -> ServingMetrics | None:
    if not is_on():
        return None
    from prometheus_client import CollectorRegistry  # not before: it looks at the environment once

    from serving.metrics.serving_metrics import ServingMetrics
    from serving.metrics.waiting_figures import let_figures_wait

    let_figures_wait()
    try:
        return ServingMetrics(CollectorRegistry())
    except OSError as error:
        log.error("this process answers without being counted, and /readyz does not know of it: there is no room for "
                  "its figures in %s (%s)", os.environ[VARIABLE], error.strerror)
        return None


def _traces(version: str) -> RequestTraces | None:
    kind = exporter_wanted()
    if not kind:
        return None
    from serving.metrics.request_traces import RequestTraces, exporter

    return RequestTraces(exporter(kind), version)


def exporter_wanted() -> str:
    """Which exporter of traces the environment asks for: otlp, console, or "" for none."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    named = os.environ.get("OTEL_TRACES_EXPORTER", "")
    has_address = any(os.environ.get(f"OTEL_EXPORTER_OTLP_{part}ENDPOINT") for part in ("", "TRACES_"))
    return "" if named == "none" else named or ("otlp" if has_address else "")


@dataclass(frozen=True)
class Watched:
    """What is asked how it stands: the `queue` for requests that wait and the seconds of the oldest, the log of
    `answers` where there is one, the `catalogue` for the seconds that it is behind and the items that it cannot show,
    the store of `users` and the event-fresh `counters` of items, where there are such."""

    manifest: Manifest
    queue: Callable[[], tuple[int, float]]
    answers: ResponseLog | None = None
    catalogue: Callable[[], tuple[float, int]] | None = None
    users: Callable[[], StoreState] | None = None
    counters: Callable[[], CounterState] | None = None


async def watch(observer: RequestObserver, watched: Watched) -> None:
    """Keeps what changes without a call current, until cancelled."""
    metrics = observer.metrics
    if metrics is None:
        return
    observer.kept("metrics of the bundle", partial(_serving, metrics, watched.manifest, observer.sample))
    with contextlib.suppress(asyncio.CancelledError):
        for number in itertools.count():
            observer.kept("metrics of what waits", partial(_look, metrics, watched))
            if observer.sample is not None and number % DRIFT_EVERY == 0:
                await _tell_drift(metrics, observer.sample)
            await asyncio.sleep(WATCH_SECONDS)


def _serving(metrics: ServingMetrics, manifest: Manifest, sample: RunningSample | None) -> None:
    metrics.serving(manifest.version, manifest.created.timestamp())
    metrics.freshness.serving(manifest)
    if sample is not None:
        metrics.drift.reference(sample.reference.calibration)


async def _tell_drift(metrics: ServingMetrics, sample: RunningSample) -> None:
    try:
        metrics.drift.drift(await asyncio.to_thread(sample.drift))
    except Exception as error:  # the other figures go on
        log.error("drift cannot be told; its figures are those of before", exc_info=error)


def _look(metrics: ServingMetrics, watched: Watched) -> None:
    metrics.queue(*watched.queue())
    if watched.catalogue is not None:
        metrics.freshness.catalogue(*watched.catalogue())
    if watched.users is not None:
        metrics.freshness.user_store(watched.users())
    if watched.counters is not None:
        metrics.freshness.item_counters(watched.counters())
    if watched.answers is not None:
        state = watched.answers.state
        metrics.response_log(state.waiting, state.lost, bool(state.cause))
