"""Distances from limits: nought where the verdict turns, negative beyond, in standard errors of what was judged."""

from __future__ import annotations

import math

import pytest

from contracts.artifacts import Artifacts
from contracts.config.days import Gate, Watch
from contracts.release.gate import Estimate, GateSummary, MedianMilliseconds, RankingGain, RecallGain
from contracts.release.watch import WatchFigure, WatchSummary
from contracts.summaries.quality import Finding, QualitySummary
from sluice.airflow_demo.distances import of_answers, of_day, of_gate, of_quality, of_watch
from sluice.release.gate import reasons


def verdict(gain: float, error: float, clicks: tuple[float, float, float] = (1.0, 0.9, 1.1)) -> GateSummary:
    value, low, high = clicks
    return GateSummary(
        challenger="m-2", settings=Gate(margin=0.03, max_miscalibration=0.5, max_latency_ratio=2.0),
        difference=RankingGain(figure="GAUC", value=gain, standard_error=error, low=gain - 1.96 * error,
                               high=gain + 1.96 * error),
        calibration=Estimate(value=value, standard_error=0.1, low=low, high=high),
        milliseconds=MedianMilliseconds(challenger=1.0, champion=2.0))


@pytest.mark.parametrize(("gain", "distance"), [(0.0, 4.04), (-0.0102, 2.0), (-0.0202, 0.0), (-0.0702, -10.0)])
def test_a_gain_is_counted_from_the_margin_by_its_lower_bound(gain, distance):
    assert of_gate(verdict(gain, 0.005))[0].distance == pytest.approx(distance, abs=1e-9)


@pytest.mark.parametrize("clicks", [(1.2, 1.1, 1.3), (1.8, 1.49, 2.1), (1.8, 1.51, 2.1), (0.5, 0.4, 0.66),
                                    (0.5, 0.4, 0.67)])
def test_calibration_turns_where_the_gate_does(clicks):
    found = verdict(0.0, 0.001, clicks)
    distance = of_gate(found)[1].distance
    assert (distance < 0) == bool(reasons(found, Gate(margin=0.03, max_miscalibration=0.5, max_latency_ratio=2.0)))


def test_an_interval_of_equal_ratios_counts_as_logarithms():
    low, high = 1.2 / math.exp(1.96 * 0.1), 1.2 * math.exp(1.96 * 0.1)  # a standard error of 0.1 in the logarithm
    assert of_gate(verdict(0.0, 0.001, (1.2, low, high)))[1].distance == pytest.approx(
        (math.log(1.5) - math.log(1.2)) / 0.1 + 1.96)


def test_latency_has_what_is_left_of_its_limit():
    judged = of_gate(verdict(0.0, 0.005))[2]
    assert (judged.value, judged.distance, judged.of_limit) == (0.5, 3.0, True)


def watched(low: float, high: float | None, value: float | None) -> WatchSummary:
    figure = WatchFigure(name="predicted_over_observed", value=value, low=low, high=high, limit=2.0, against=low > 2.0,
                         sentence="")
    other = WatchFigure(name="p99_ms", value=9.0, low=8.0, high=10.0, limit=100.0, against=False, sentence="")
    return WatchSummary(bundle="m-2", since="", until="", answers=900, figures=(other, figure), not_judged=(),
                        reasons=(), settings=Watch())


def test_the_watch_is_counted_by_its_clicks():
    assert of_watch(watched(1.2, 1.6, 1.4))[0].distance > 0
    assert of_watch(watched(4.0, 9.0, 6.0))[0].distance < 0


def test_of_what_else_the_watch_saw_the_nearest_to_its_limit_is_shown():
    found = watched(4.0, None, None)  # no click came, which has no interval
    none = WatchFigure(name="refusal_rate", value=0.0, low=0.0, high=0.01, limit=0.05, against=False, sentence="")
    some = WatchFigure(name="error_rate", value=0.01, low=0.008, high=0.02, limit=0.01, against=False, sentence="")
    [judged] = of_watch(found.model_copy(update={"figures": (*found.figures, none, some)}))
    assert (judged.figure, judged.distance, judged.of_limit) == ("watch: error_rate", pytest.approx(0.25), True)


def test_the_slowest_answer_has_what_is_left_of_its_limit():
    [judged] = of_answers([0.1, 0.5, 0.2], 20.0)
    assert (judged.value, judged.distance, judged.of_limit) == (0.5, 39.0, True)
    assert of_answers([], 20.0) == []


@pytest.mark.parametrize(("error", "distance"), [(0.01, 2.0), (0.0, 20.0)])  # of no difference, as of one click
def test_retrieval_is_counted_from_its_limit_by_its_upper_bound(error, distance):
    gain = RecallGain(value=-0.02, standard_error=error, low=-0.03, high=-0.01, clicks=1000, challenger=0.5,
                      champion=0.52)
    judged = of_gate(verdict(0.0, 0.005).model_copy(update={"recall": gain}))[1]
    assert (judged.figure, judged.distance) == ("gate: retrieval gain", pytest.approx(distance))


def day(*figures: Finding) -> QualitySummary:
    rows = Finding(figure="rows", value=10_000.0, low=5_000.0, high=20_000.0)
    return QualitySummary(day="2026-01-14", history=(), judged=3, refused=(), columns=(), figures=(rows, *figures))


def test_a_share_of_nulls_is_counted_in_its_binomial_errors():
    nulls = of_quality(day(Finding(figure="null_rate.device", value=0.5, high=0.02),
                           Finding(figure="null_rate.city", value=0.0, high=0.02)))[0]
    assert (nulls.figure, nulls.distance) == ("quality: null_rate.device", pytest.approx(-0.48 / 0.005))


def test_of_the_drifts_the_one_nearest_to_its_limit_is_shown():
    psi, other = Finding(figure="psi.device", value=0.4, high=0.5), Finding(figure="psi.city", value=0.1, high=0.5)
    unlimited = Finding(figure="psi.user", value=9.0)
    judged = of_quality(day(other, psi, unlimited))[1]
    assert (judged.figure, judged.distance) == ("quality: psi.device", pytest.approx(0.25))


@pytest.mark.parametrize(("value", "limit", "distance"), [(0.021, ">= 0.02", 0.001), (0.31, "<= 0.3", -0.01)])
def test_a_share_with_two_limits_is_counted_from_the_nearer(value, limit, distance):
    judged = of_quality(day(Finding(figure="label_rate", value=value, low=0.02, high=0.3)))[0]
    error = math.sqrt(value * (1 - value) / 10_000)
    assert (judged.limit, judged.distance) == (limit, pytest.approx(distance / error))


def test_rows_are_counted_in_poissons_errors():
    assert (of_quality(day())[0].limit, of_quality(day())[0].distance) == (">= 5000", pytest.approx(50.0))


def test_a_day_that_nothing_was_judged_of_has_none(tmp_path):
    assert of_day(Artifacts(tmp_path), "2026-01-14") == []
