"""Spans as an exporter gets them: of the caller's trace, one a stage, one after the other, and sampled."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from contracts.errors import ConfigError
from serving.metrics.request_observer import EndedCall, RequestObserver
from serving.metrics.request_traces import RequestTraces, exporter
from serving.request.query import RankAnswer, StageReport

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
ANSWER = RankAnswer([], [StageReport("retrieve", 5000, 1000, 1500), StageReport("rank", 200, 200, 2500),
                         StageReport("explain", 5, 5, 0)], "v", [], True)


def spans(*calls: EndedCall) -> dict[str, ReadableSpan]:
    kept = InMemorySpanExporter()
    observer = RequestObserver(traces=RequestTraces(kept, "market-1"))
    for call in calls:
        observer.ended(call)
    observer.close()
    return {span.name: span for span in kept.get_finished_spans()}


def test_a_call_continues_the_callers_trace_with_a_span_a_stage() -> None:
    found = spans(EndedCall("Rank", "OK", 0.005, ANSWER, "r1", PARENT))
    assert set(found) == {"sluice.v1.Ranking/Rank", "retrieve", "rank"}
    whole, first, second = found["sluice.v1.Ranking/Rank"], found["retrieve"], found["rank"]
    assert {f"{span.context.trace_id:032x}" for span in found.values() if span.context} == {TRACE}
    assert whole.parent is not None
    assert f"{whole.parent.span_id:016x}" == CALLER
    assert whole.context is not None
    assert first.parent is not None
    assert first.parent.span_id == whole.context.span_id
    assert (whole.attributes or {})["sluice.request_id"] == "r1"
    assert (second.attributes or {})["sluice.candidates_in"] == 200
    times = [span.start_time or 0 for span in (whole, first, second)]
    assert times == sorted(times)
    assert (first.end_time or 0) - times[1] == 1_500_000
    assert second.end_time == whole.end_time
    assert first.end_time == second.start_time


def test_a_call_that_fails_is_an_error() -> None:
    whole = spans(EndedCall("Score", "INTERNAL", 0.001))["sluice.v1.Ranking/Score"]
    assert whole.status.status_code is StatusCode.ERROR


class Hanging(SpanExporter):
    """Takes no spans before `goes_on`."""

    def __init__(self) -> None:
        self.goes_on, self.taken = threading.Event(), threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.goes_on.wait()
        self.taken.set()
        return SpanExportResult.SUCCESS


def test_the_end_waits_a_moment_for_a_collector_and_no_longer() -> None:
    collector = Hanging()
    traces = RequestTraces(collector, "market-1")
    RequestObserver(traces=traces).ended(EndedCall("Rank", "OK", 0.005, ANSWER))
    traces.close(0.05)
    assert not collector.taken.is_set()
    collector.goes_on.set()
    assert collector.taken.wait(20)


def test_what_the_caller_has_not_sampled_is_not_recorded() -> None:
    assert spans(EndedCall("Rank", "OK", 0.005, ANSWER, "r1", {"traceparent": f"00-{TRACE}-{CALLER}-00"})) == {}


def test_the_sampler_of_the_environment_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
    assert spans(EndedCall("Rank", "OK", 0.005, ANSWER)) == {}
    assert len(spans(EndedCall("Rank", "OK", 0.005, ANSWER, "r1", PARENT))) == 3


def test_an_exporter_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match="otlp, console or none"):
        exporter("zipkin")
