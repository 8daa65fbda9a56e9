"""Traces of requests by OpenTelemetry: a span a call, continued from the caller's `traceparent`, and a span a stage.

Off unless the environment names where to: OTEL_EXPORTER_OTLP_ENDPOINT (or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT), or
OTEL_TRACES_EXPORTER=console. The other variables of OpenTelemetry hold as well: OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER
and OTEL_TRACES_SAMPLER_ARG (`parentbased_traceidratio`, `0.1`), OTEL_SDK_DISABLED, OTEL_BSP_*.

Spans are made once a call has ended, from what its stages report anyway: a call that is not sampled costs the decision.
A stage's span has the stage's own duration; spans of stages follow one another up to the end of the call, and what lies
before the first was spent waiting and reading.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from contracts.errors import ConfigError
from serving.request.query import PageAnswer, RankAnswer, StageReport, slates_of

PROPAGATOR = TraceContextTextMapPropagator()
CLOSE_SECONDS = 2.0


class RequestTraces:
    """`exporter` gets the spans, in a thread of their own; `version` of the bundle is said with each."""

    def __init__(self, exporter: SpanExporter, version: str) -> None:
        name = os.environ.get("OTEL_SERVICE_NAME", "sluice")
        self._provider = TracerProvider(resource=Resource.create({"service.name": name}))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer, self._version = self._provider.get_tracer("sluice.serving"), version

    def ended(
        self, method: str, status: str, seconds: float, answer: RankAnswer | PageAnswer | None, request_id: str,
        caller: Mapping[str, str],
    ) -> str:
        """A call, once it has ended. Returns the id of its trace."""
        end = time.time_ns()
        parent = PROPAGATOR.extract(caller)
        span = self._tracer.start_span(f"sluice.v1.Ranking/{method}", context=parent, kind=SpanKind.SERVER,
                                       start_time=end - round(seconds * 1e9))
        if span.is_recording():
            span.set_attributes({"rpc.system": "grpc", "rpc.method": method, "sluice.status": status,
                                 "sluice.request_id": request_id, "sluice.bundle": self._version})
            if status != "OK":
                span.set_status(StatusCode.ERROR, status)
            self._stages(_stages(answer), trace.set_span_in_context(span), end)
        span.end(end)
        return trace.format_trace_id(span.get_span_context().trace_id)

    def _stages(self, stages: list[StageReport], parent: Context, end: int) -> None:
        begun = end - sum(1000 * stage.microseconds for stage in stages)
        for stage in stages:
            span = self._tracer.start_span(stage.name, context=parent, start_time=begun, attributes={
                "sluice.candidates_in": stage.candidates_in, "sluice.candidates_out": stage.candidates_out,
                "sluice.stage_status": stage.status.value, "sluice.cause": stage.cause,
                "sluice.fallback": stage.fallback.value})
            begun += 1000 * stage.microseconds
            span.end(begun)

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Sends what is left, as far as that takes no longer: a collector that hangs would hold the process for as
        long as the exporter waits for it."""
        sending = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        sending.start()
        sending.join(seconds)


def _stages(answer: RankAnswer | PageAnswer | None) -> list[StageReport]:
    return [stage for slate in (slates_of(answer) if answer else []) for stage in slate.stages if stage.microseconds]


def exporter(kind: str) -> SpanExporter:
    """Raises ConfigError for a kind that is not known, or whose package is missing."""
    if kind == "console":
        return ConsoleSpanExporter()
    if kind != "otlp":
        raise ConfigError(f"OTEL_TRACES_EXPORTER is {kind!r}; it may be otlp, console or none")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise ConfigError("traces by OTLP need the package opentelemetry-exporter-otlp-proto-http; install "
                          "sluice[tracing], or set OTEL_TRACES_EXPORTER=none") from None
    return OTLPSpanExporter()
