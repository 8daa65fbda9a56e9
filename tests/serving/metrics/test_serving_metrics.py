"""Each metric moves by what it counts, by as much, and by nothing else; docs/reference/metrics.md names these tests."""

from __future__ import annotations

import inspect
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client import CollectorRegistry

from contracts.summaries.bundle import BundleMetrics, ParityFigures
from serving.balancer.refusals import Refusals
from serving.bundle.loaded_bundle import LoadedBundle
from serving.item_counters.counter_state import CounterState
from serving.metrics.running_sample import Drift
from serving.metrics.serving_metrics import ServingMetrics
from serving.request.query import Fallback, PageAnswer, RankAnswer, RankedItem, StageReport, StageStatus
from serving.stages.rerank import NO_TIME
from serving.users.circuit_breaker import StoreState

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "metrics.md"


class Seen:
    """Metrics and a way to read one of them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = ServingMetrics(self.registry)

    def value(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def seen() -> Seen:
    return Seen()


def an_item(probability: float) -> RankedItem:
    return RankedItem(item="i", probability=probability, score=1.0, sold=None, channel="two_tower", stage_scores={},
                      reasons=[])


def an_answer(*stages: StageReport, probabilities: tuple[float, ...] = (0.25,)) -> RankAnswer:
    return RankAnswer([an_item(value) for value in probabilities], list(stages), "v", [], True)


RANK = StageReport("rank", 200, 150, 4000)
LATE = StageReport("prerank", 900, 200, 0, StageStatus.SKIPPED, NO_TIME, Fallback.TWO_TOWER_SCORE)


def test_a_call_is_counted_by_its_status(seen: Seen) -> None:
    seen.metrics.ended("Rank", "OK", 0.004, an_answer(RANK))
    seen.metrics.ended("Rank", "RESOURCE_EXHAUSTED", 0.0)
    seen.metrics.ended("Score", "OK", 0.002)
    seen.metrics.refused("Rank", "RESOURCE_EXHAUSTED", 41)
    assert seen.value("sluice_requests_total", method="Rank", status="OK") == 1
    assert seen.value("sluice_requests_total", method="Rank", status="RESOURCE_EXHAUSTED") == 42
    assert seen.value("sluice_requests_total", method="Score", status="OK") == 1


def test_seconds_are_of_answers_in_time_alone(seen: Seen) -> None:
    seen.metrics.ended("Rank", "OK", 0.004, an_answer(RANK))
    seen.metrics.ended("Rank", "DEADLINE_EXCEEDED", 9.0)
    assert seen.value("sluice_request_seconds_sum", method="Rank") == pytest.approx(0.004)
    assert seen.value("sluice_request_seconds_bucket", method="Rank", le="0.005") == 1
    assert seen.value("sluice_request_seconds_bucket", method="Rank", le="0.003") == 0


def test_a_stage_tells_its_seconds_and_candidates(seen: Seen) -> None:
    seen.metrics.ended("Rank", "OK", 0.01, an_answer(RANK, LATE))
    assert seen.value("sluice_stage_seconds_sum", stage="rank") == pytest.approx(0.004)
    assert seen.value("sluice_stage_candidates_in_total", stage="rank") == 200
    assert seen.value("sluice_stage_candidates_out_total", stage="rank") == 150
    assert seen.value("sluice_stage_seconds_count", stage="prerank") == 0


def test_a_degradation_is_counted_by_stage_fallback_and_cause(seen: Seen) -> None:
    seen.metrics.ended("Rank", "OK", 0.01, an_answer(RANK, LATE))
    seen.metrics.ended("Rank", "OK", 0.01, an_answer(RANK))
    assert seen.value("sluice_stage_degradations_total", stage="prerank", fallback="two_tower_score",
                      cause="no_time") == 1
    assert seen.value("sluice_degraded_answers_total", method="Rank") == 1


def test_a_page_counts_once_as_a_call_and_by_slate_as_stages(seen: Seen) -> None:
    page = PageAnswer(("a", "b"), [an_answer(RANK), an_answer(RANK)])
    seen.metrics.ended("Rank", "OK", 0.01, page)
    assert seen.value("sluice_requests_total", method="Rank", status="OK") == 1
    assert seen.value("sluice_stage_seconds_count", stage="rank") == 2


def test_probabilities_of_shown_items_make_a_histogram(seen: Seen) -> None:
    seen.metrics.ended("Rank", "OK", 0.01, an_answer(probabilities=(0.04, 0.15, 0.95)))
    assert seen.value("sluice_shown_probability_bucket", le="0.05") == 1
    assert seen.value("sluice_shown_probability_bucket", le="0.2") == 2
    assert seen.value("sluice_shown_probability_count") == 3


def test_a_process_says_that_it_serves_what_and_that_it_stops(seen: Seen) -> None:
    seen.metrics.serving("market-1", 1_700_000_000.0)
    assert seen.value("sluice_workers") == 1
    assert seen.value("sluice_bundle_created_timestamp_seconds", version="market-1") == 1_700_000_000
    seen.metrics.stopped()
    assert seen.value("sluice_workers") == 0


def test_the_queue_is_told(seen: Seen) -> None:
    seen.metrics.queue(3, 0.125)
    assert seen.value("sluice_queue_requests") == 3
    assert seen.value("sluice_queue_age_seconds") == 0.125


def test_the_response_log_is_told_and_losses_add_up(seen: Seen) -> None:
    seen.metrics.response_log(7, 2, True)
    assert seen.value("sluice_response_log_waiting") == 7
    assert seen.value("sluice_response_log_failing") == 1
    assert seen.value("sluice_response_log_lost_total") == 2
    seen.metrics.response_log(0, 5, False)
    assert seen.value("sluice_response_log_waiting") == 0
    assert seen.value("sluice_response_log_failing") == 0
    assert seen.value("sluice_response_log_lost_total") == 5


def test_the_age_of_the_newest_event_of_a_user_is_told(seen: Seen) -> None:
    seen.metrics.ended("Rank", "OK", 0.01, an_answer(StageReport("user", 0, 0, 90, age=30.0), RANK))
    seen.metrics.ended("Rank", "OK", 0.01, an_answer(StageReport("user", 0, 0, 90), RANK))
    assert seen.value("sluice_user_age_seconds_count") == 1
    assert seen.value("sluice_user_age_seconds_bucket", le="60.0") == 1
    assert seen.value("sluice_user_age_seconds_bucket", le="10.0") == 0


def test_the_data_of_a_bundle_have_an_end(seen: Seen, loaded: LoadedBundle) -> None:
    until = datetime(2026, 1, 2, tzinfo=UTC)
    parity = ParityFigures(rows=1, mismatches=0, max_logit_difference=0.0)
    metrics = BundleMetrics(ranker="dnn", parity=parity, data_until=until)
    seen.metrics.freshness.serving(loaded.manifest.model_copy(update={"metrics": metrics}))
    assert seen.value("sluice_bundle_data_timestamp_seconds", version=loaded.version) == until.timestamp()


def test_the_catalogues_lag_and_what_it_cannot_show_are_told(seen: Seen) -> None:
    seen.metrics.freshness.catalogue(2.5, 7)
    assert seen.value("sluice_catalogue_lag_seconds") == 2.5
    assert seen.value("sluice_catalogue_unshown_items") == 7


def test_the_items_counters_are_told_once_they_are_ranked_by(seen: Seen) -> None:
    seen.metrics.freshness.item_counters(CounterState(None, 7, ""))
    assert seen.value("sluice_item_counters_items") == 0
    seen.metrics.freshness.item_counters(CounterState(0.25, 7, ""))
    assert seen.value("sluice_item_counters_items") == 7
    assert seen.value("sluice_item_counters_age_seconds") == 0.25


def test_what_the_items_counters_lack_is_told(seen: Seen) -> None:
    seen.metrics.freshness.item_counters(CounterState(None, 0, "", waiting=700, passed_over=2))
    assert seen.value("sluice_item_counters_waiting_events") == 700
    assert seen.value("sluice_item_counters_failing") == 0
    assert seen.value("sluice_item_counters_passed_over_total") == 2
    seen.metrics.freshness.item_counters(CounterState(0.1, 5, "the disk is full", passed_over=2))
    assert seen.value("sluice_item_counters_waiting_events") == 0
    assert seen.value("sluice_item_counters_failing") == 1
    assert seen.value("sluice_item_counters_passed_over_total") == 2


def test_the_shared_store_of_users_is_told(seen: Seen) -> None:
    at = datetime(2026, 1, 5, tzinfo=UTC)
    seen.metrics.freshness.user_store(StoreState(None, 2, True))
    assert seen.value("sluice_user_store_down") == 1
    seen.metrics.freshness.user_store(StoreState(at, 5, False))
    assert seen.value("sluice_user_store_down") == 0
    assert seen.value("sluice_user_store_failures_total") == 5
    assert seen.value("sluice_user_store_published_timestamp_seconds") == at.timestamp()


def test_refused_events_are_counted_by_how_they_came(seen: Seen) -> None:
    for by, events in (("call", 2), ("stream", 1), ("call", 3)):
        seen.metrics.freshness.refused(by, events)
    assert seen.value("sluice_events_refused_total", by="call") == 5
    assert seen.value("sluice_events_refused_total", by="stream") == 1


def test_new_events_are_counted_by_kind(seen: Seen) -> None:
    seen.metrics.freshness.recorded(["impression", "click", "impression"])
    assert seen.value("sluice_events_recorded_total", kind="impression") == 2
    assert seen.value("sluice_events_recorded_total", kind="click") == 1
    assert seen.value("sluice_events_late_commits_total") == 0
    seen.metrics.freshness.was_late()
    assert seen.value("sluice_events_late_commits_total") == 1
    assert seen.value("sluice_events_newest_timestamp_seconds") == pytest.approx(time.time(), abs=60)


def test_drift_is_told_by_field_once_the_sample_is_large_enough(seen: Seen) -> None:
    seen.metrics.drift.drift(Drift(499))
    assert seen.value("sluice_drift_sample_requests") == 499
    assert seen.registry.get_sample_value("sluice_field_drift_psi", {"field": "hour"}) is None
    seen.metrics.drift.drift(Drift(500, {"hour": 0.3}, 0.2))
    assert seen.value("sluice_field_drift_psi", field="hour") == 0.3
    assert seen.value("sluice_score_drift_psi") == 0.2


def test_the_validations_calibration_is_told(seen: Seen) -> None:
    seen.metrics.drift.reference(1.25)
    assert seen.value("sluice_validation_calibration") == 1.25


def test_refusals_of_the_balancer_are_counted(seen: Seen) -> None:
    refusals = Refusals(seen.registry)
    refusals.more(3, 0.0)
    refusals.more(4, 1.0)
    assert seen.value("sluice_balancer_refused_total") == 7


SUFFIX = {"counter": "_total"}


def test_the_page_names_every_metric_as_it_is_and_no_other(seen: Seen, loaded: LoadedBundle) -> None:
    seen.metrics.ended("Rank", "OK", 0.01, an_answer(StageReport("user", 0, 0, 90, age=30.0), RANK, LATE))
    seen.metrics.serving("market-1", 1_700_000_000.0)
    seen.metrics.freshness.recorded(["click"])
    seen.metrics.drift.drift(Drift(500, {"hour": 0.3}, 0.2))
    metrics = BundleMetrics(ranker="dnn", parity=ParityFigures(rows=1, mismatches=0, max_logit_difference=0.0),
                            data_until=datetime(2026, 1, 2, tzinfo=UTC))
    seen.metrics.freshness.serving(loaded.manifest.model_copy(update={"metrics": metrics}))
    Refusals(seen.registry)
    known = {}
    for metric in seen.registry.collect():
        labels = {label for sample in metric.samples for label in sample.labels} - {"le"}
        known[metric.name + SUFFIX.get(metric.type, "")] = metric.type, sorted(labels)
    assert {row.name: (row.kind, sorted(row.labels)) for row in rows()} == known


def test_the_test_that_the_page_names_of_a_metric_looks_at_it() -> None:
    unseen = {row.name: row.test for row in rows()
              if not re.search(rf'"{row.name}(_bucket|_sum|_count)?"', inspect.getsource(globals()[row.test]))}
    assert unseen == {}


class Row(NamedTuple):
    """One of the page's table."""

    name: str
    kind: str
    labels: list[str]
    test: str


def rows() -> list[Row]:
    line = r"^\| `(sluice_[a-z_]+)` \| (\w+)(?:: ([a-z, ]+))? \|.*\| `(test_[a-z_]+)` \|$"
    found = re.findall(line, PAGE.read_text("utf-8"), re.M)
    return [Row(name, kind, labels.split(", ") if labels else [], test) for name, kind, labels, test in found]
