"""Spans sent by OpenTelemetry's own exporter over OTLP are found by their trace."""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from serving.metrics.request_observer import EndedCall, RequestObserver
from serving.metrics.request_traces import RequestTraces
from serving.request.query import RankAnswer, StageReport
from sluice.stack.trace_receiver import TraceReceiver

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_what_an_exporter_sends_arrives() -> None:
    answer = RankAnswer([], [StageReport("rank", 2, 2, 10)], "v", [], True)
    with TraceReceiver() as receiver:
        observer = RequestObserver(traces=RequestTraces(OTLPSpanExporter(f"{receiver.address}/v1/traces"), "v"))
        observer.ended(EndedCall("Rank", "OK", 0.001, answer, "r", {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}))
        observer.close()
        assert receiver.spans(TRACE) == {"sluice.v1.Ranking/Rank", "rank"}
        assert receiver.spans("0" * 32) == set()
