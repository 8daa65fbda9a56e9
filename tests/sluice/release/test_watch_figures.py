"""Intervals against exact ones by hand, and each limit firing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.config.days import Watch
from sluice.release.watch_figures import (
    calibration,
    error_rate,
    incomplete_retrieval,
    p99,
    refusal_rate,
    slowness,
    slowness_against,
)

SETTINGS = Watch()


def failures(n: int, failed: int) -> np.ndarray:
    return np.arange(n) < failed


@given(st.integers(100, 5000), st.floats(0, 1))
@settings(deadline=None)
def test_the_interval_of_a_share_solves_wilsons_equation(n, share):
    failed = int(share * n)
    found = error_rate(failures(n, failed), SETTINGS)
    assert found.high is not None
    assert found.low - 1e-12 <= failed / n <= found.high + 1e-12
    for end in {found.low, found.high} - {0.0}:
        assert (failed / n - end) ** 2 == pytest.approx(1.96**2 * end * (1 - end) / n, abs=1e-12)


def test_an_error_rate_counts_when_its_lower_end_is_beyond_the_limit():
    assert not error_rate(failures(1000, 14), SETTINGS).against
    assert error_rate(failures(1000, 30), SETTINGS).against


def test_refusals_have_a_limit_of_their_own():
    assert not refusal_rate(failures(1000, 60), SETTINGS).against
    assert refusal_rate(failures(1000, 80), SETTINGS).against
    assert not refusal_rate(failures(1000, 1000), Watch(max_refusal_rate=1.0)).against


def test_retrieval_without_a_channel_has_a_limit():
    assert not incomplete_retrieval(failures(1000, 60), SETTINGS).against
    found = incomplete_retrieval(failures(1000, 90), SETTINGS)
    assert found.against
    assert "0.0900 of 1000 answers" in found.sentence
    assert not incomplete_retrieval(failures(1000, 1000), Watch(max_incomplete_retrieval=1.0)).against


def test_the_interval_of_the_99th_percentile_covers_it_as_often_as_it_says():
    draw, truth, inside = np.random.default_rng(1), -math.log(0.01), 0
    for _ in range(500):
        _, low, high = p99(draw.exponential(size=2000))
        inside += low <= truth <= high
    assert 0.93 < inside / 500 <= 1


def test_latency_counts_against_a_limit_and_against_the_bundle_before():
    draw = np.random.default_rng(2)
    quick, slow = draw.exponential(size=1000) * 5, draw.exponential(size=1000) * 20
    assert not slowness(quick, SETTINGS).against
    assert slowness(slow * 5, SETTINGS).against
    assert slowness_against(slow, quick, SETTINGS).against
    assert not slowness_against(quick, slow, SETTINGS).against
    assert not slowness_against(quick, quick[::2], SETTINGS).against


@pytest.mark.parametrize(("factor", "against"), [(1.0, False), (1.8, True), (0.5, True)])
def test_predictions_count_when_they_are_surely_off(factor, against):
    draw = np.random.default_rng(3)
    chance = draw.uniform(0.05, 0.3, size=4000)
    found = calibration(draw.random(4000) < chance, chance * factor, draw.integers(300, size=4000).astype(str),
                        SETTINGS, 0)
    assert found.against == against
    assert found.low < factor < found.high


def test_no_click_at_all_is_held_against_what_was_promised():
    found = calibration(np.zeros(900, dtype=bool), np.full(900, 0.1), np.arange(900).astype(str), SETTINGS, 0)
    assert (found.value, found.low, found.high, found.against) == (None, pytest.approx(30), None, True)
    few = calibration(np.zeros(30, dtype=bool), np.full(30, 0.1), np.arange(30).astype(str), SETTINGS, 0)
    assert not few.against
