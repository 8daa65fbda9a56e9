"""Each metric moves by what it counts, by as much, and by nothing else; docs/reference/metrics.md names these tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from serving.metrics.serving_metrics import ServingMetrics
from serving.request.query import Fallback, PageAnswer, RankAnswer, RankedItem, StageReport, StageStatus
from serving.stages.rerank import NO_TIME

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
    assert seen.value("sluice_requests_total", method="Rank", status="OK") == 1
    assert seen.value("sluice_requests_total", method="Rank", status="RESOURCE_EXHAUSTED") == 1
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
    seen.metrics.response_log(0, 5, False)
    assert seen.value("sluice_response_log_waiting") == 0
    assert seen.value("sluice_response_log_failing") == 0
    assert seen.value("sluice_response_log_lost_total") == 5


def test_the_page_names_every_metric_and_no_other_and_each_has_its_test(seen: Seen) -> None:
    rows = re.findall(r"^\| `(sluice_[a-z_]+)`.*\| `(test_[a-z_]+)` \|$", PAGE.read_text("utf-8"), re.M)
    suffix = {"counter": "_total"}
    known = {metric.name + suffix.get(metric.type, "") for metric in seen.registry.collect()}
    assert {name for name, _ in rows} == known
    tests = set(re.findall(r"^def (test_\w+)", Path(__file__).read_text("utf-8"), re.M))
    assert {test for _, test in rows} <= tests
