"""An observer hears of every call of a real server once, whatever came of it."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from contracts.bundle.reference import Reference
from contracts.features.encoded_profiles import numbers_profile
from serving.bundle.loaded_bundle import LoadedBundle
from serving.item_counters.counter_state import CounterState
from serving.metrics.call_log import CallLog
from serving.metrics.freshness_metrics import FreshnessMetrics
from serving.metrics.request_observer import (
    NOBODY,
    EndedCall,
    RequestObserver,
    Watched,
    exporter_wanted,
    observer_of_process,
    watch,
)
from serving.metrics.running_sample import Drift, RunningSample
from serving.metrics.serving_metrics import ServingMetrics
from serving.server.client import RankingClient
from serving.server.connection import RankingFailed
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from serving.users.circuit_breaker import StoreState
from tests.serving.in_process_server import InProcessServer


@pytest.fixture(scope="module")
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture(scope="module")
def target(loaded: LoadedBundle, registry: CollectorRegistry) -> Iterator[str]:
    observer = RequestObserver(ServingMetrics(registry))
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, loaded.settings.serve, observer=observer)
    with InProcessServer(servicer) as server:
        yield server.target
    servicer.close()


def count(registry: CollectorRegistry, method: str, status: str) -> float:
    return registry.get_sample_value("sluice_requests_total", {"method": method, "status": status}) or 0.0


def test_every_call_is_heard_of_once(target: str, registry: CollectorRegistry, loaded: LoadedBundle) -> None:
    with RankingClient(target) as client:
        client.rank("u", limit=3, seconds=20)
        client.score("u", [loaded.items.key(0)], seconds=20)
        for ask in (lambda: client.rank("", seconds=20), lambda: client.score("u", [], seconds=20)):
            with pytest.raises(RankingFailed):
                ask()
        client.rank("u", limit=3, seconds=20)  # what ended before has been told by now
        client.rank("u", limit=3, seconds=20)
    assert count(registry, "Rank", "OK") >= 2
    assert count(registry, "Score", "OK") == 1
    assert count(registry, "Rank", "INVALID_ARGUMENT") == count(registry, "Score", "INVALID_ARGUMENT") == 1
    assert (registry.get_sample_value("sluice_stage_candidates_out_total", {"stage": "rerank"}) or 0) >= 6


def test_calls_of_which_nothing_is_known_are_counted_together(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    observer = RequestObserver(ServingMetrics(registry), calls=CallLog(False))
    with caplog.at_level(logging.WARNING, "sluice.calls"):
        observer.refused("Rank", "RESOURCE_EXHAUSTED", 3)
    assert count(registry, "Rank", "RESOURCE_EXHAUSTED") == 3
    assert [record.getMessage() for record in caplog.records] == ["Rank RESOURCE_EXHAUSTED"] * 3


def test_a_line_of_the_log_has_the_ids_of_request_and_trace(caplog: pytest.LogCaptureFixture) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    observer = RequestObserver(calls=CallLog(everything=False))
    observer.ended(EndedCall("Rank", "INTERNAL", 0.5, None, "r1", {"traceparent": f"00-{trace}-00f067aa0ba902b7-00"}))
    [record] = caplog.records
    about = record.fields  # type: ignore[attr-defined]
    assert (about["request_id"], about["trace_id"]) == ("r1", trace)


def test_without_a_side_port_nobody_counts(loaded: LoadedBundle) -> None:
    assert observer_of_process(loaded) is NOBODY
    NOBODY.ended(EndedCall("Rank", "OK"))
    NOBODY.close()


@pytest.mark.parametrize(("variables", "kind"), [
    ({}, ""), ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, "otlp"),
    ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318"}, "otlp"),
    ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"}, ""),
    ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, "")])
def test_traces_are_asked_for_by_the_usual_variables(
    variables: dict[str, str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER",
                 "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert exporter_wanted() == kind


def test_what_changes_without_a_call_is_watched(loaded: LoadedBundle) -> None:
    registry = CollectorRegistry()
    observer = RequestObserver(ServingMetrics(registry))

    async def a_moment() -> None:
        watched = Watched(loaded.manifest, lambda: (2, 0.5), catalogue=lambda: (7.0, 3),
                          users=lambda: StoreState(None, 3, True), counters=lambda: CounterState(0.5, 4, ""))
        task = asyncio.create_task(watch(observer, watched))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    asyncio.run(a_moment())
    assert registry.get_sample_value("sluice_queue_requests") == 2
    assert registry.get_sample_value("sluice_catalogue_lag_seconds") == 7
    assert registry.get_sample_value("sluice_catalogue_unshown_items") == 3
    assert registry.get_sample_value("sluice_user_store_failures_total") == 3
    assert registry.get_sample_value("sluice_item_counters_items") == 4
    assert registry.get_sample_value("sluice_workers") == 1
    observer.stopping()
    assert registry.get_sample_value("sluice_workers") == 0


def test_figures_of_events_that_fail_cost_nobody_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not the events, which are on the disk by then, nor those who are told of refused ones."""
    def fail(*told: object) -> None:
        raise OSError("no room for figures")

    for name in ("recorded", "was_late", "refused"):
        monkeypatch.setattr(FreshnessMetrics, name, fail)
    observer = RequestObserver(ServingMetrics(CollectorRegistry()))
    observer.recorded(["click"])
    observer.was_late()
    observer.refused_events("call", 1)
    assert [message[:17] for message in caplog.messages] == ["metrics of events"]


def test_a_bundles_figures_that_fail_leave_what_is_watched(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*told: object) -> None:
        raise OSError("no room for figures")

    async def a_moment() -> None:
        task = asyncio.create_task(watch(RequestObserver(ServingMetrics(registry)), Watched(loaded.manifest, queue)))
        await asyncio.wait_for(looked.wait(), 20)
        task.cancel()
        await task

    def queue() -> tuple[int, float]:
        looked.set()
        return 2, 0.5

    monkeypatch.setattr(FreshnessMetrics, "serving", fail)
    registry, looked = CollectorRegistry(), asyncio.Event()
    asyncio.run(a_moment())
    assert registry.get_sample_value("sluice_queue_requests") == 2
    assert "metrics of the bundle" in caplog.text


def test_a_sample_that_fails_leaves_the_other_figures(
    loaded: LoadedBundle, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(RunningSample):
        def drift(self) -> Drift:
            raise ValueError("no such field")

    async def twice() -> None:
        looks, seen = itertools.count(1), asyncio.Event()

        def queue() -> tuple[int, float]:
            if next(looks) == 2:
                seen.set()
            return 0, 0.0

        reference = Reference(rows=0, shown=0, fields={}, scores=numbers_profile(np.zeros(1)))
        observer = RequestObserver(ServingMetrics(CollectorRegistry()), sample=Failing(loaded, reference))
        task = asyncio.create_task(watch(observer, Watched(loaded.manifest, queue)))
        await asyncio.wait_for(seen.wait(), 20)
        task.cancel()
        await task

    asyncio.run(twice())
    assert "drift cannot be told" in caplog.text
