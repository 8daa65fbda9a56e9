"""Resampling by user: laws of the interval, and closed forms where rows are independent."""

from __future__ import annotations

import math

import numpy as np
import pytest

from contracts.errors import DataError, OneClassError
from models.evaluation.bootstrap import (
    SortedRows,
    auc_bootstrap,
    auc_within,
    calibration_interval,
    gauc_difference,
    mean_bootstrap,
    of_each_class,
)
from models.evaluation.metrics import auc, gauc


def clicks(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, rows)
    return labels, np.round(labels + generator.normal(0, 1.5, rows), 1)


def test_integer_weights_are_repeated_rows() -> None:
    labels, scores = clicks(80)
    weight = np.random.default_rng(1).integers(0, 4, 80)
    repeated = auc(np.repeat(labels, weight), np.repeat(scores, weight))
    assert SortedRows(labels, scores).auc(weight.astype(float)) == pytest.approx(repeated)


def test_within_groups_only_rows_of_one_are_compared() -> None:
    """Known: every pair of a click and a row without, in each group alone."""
    labels, scores = clicks(90)
    groups = np.random.default_rng(4).integers(0, 5, 90)
    apart = scores + 100 * groups  # which says nothing within one
    pairs = [(a, b) for a in np.flatnonzero(labels) for b in np.flatnonzero(1 - labels) if groups[a] == groups[b]]
    expected = np.mean([np.sign(scores[a] - scores[b]) / 2 + 0.5 for a, b in pairs])
    assert auc_within(labels, apart, groups) == pytest.approx(expected)
    assert auc_bootstrap(labels, apart, np.arange(90), within=groups, draws=20).value == pytest.approx(expected)
    assert auc_within(labels, scores, None) == auc(labels, scores)
    with pytest.raises(OneClassError, match="both classes"):
        auc_within(labels, scores, labels)


def test_of_many_rows_those_of_the_rarer_class_are_all_taken() -> None:
    labels = (np.arange(1000) % 100 == 3).astype(float)
    assert of_each_class(labels, 1000).tolist() == list(range(1000))
    rows = of_each_class(labels, 200)
    assert labels[rows].sum() == 10
    assert 150 <= len(rows) <= 200
    assert (np.diff(rows) > 0).all()
    many = of_each_class(1 - labels, 200)
    assert ((1 - labels)[many].sum(), labels[many].sum()) == (pytest.approx(100, abs=1), 10)
    assert len(of_each_class(np.zeros(1000), 200)) == 200


def test_standard_error_of_independent_rows_is_hanley_and_mcneils() -> None:
    """Hanley and McNeil 1982 give the standard error of an AUC of independent rows in closed form."""
    labels, scores = clicks(2000)
    found = auc_bootstrap(labels, scores, np.arange(2000), draws=400)
    a, p = found.value, int(labels.sum())
    n = 2000 - p
    first, second = a / (2 - a), 2 * a * a / (1 + a)
    expected = math.sqrt((a * (1 - a) + (p - 1) * (first - a * a) + (n - 1) * (second - a * a)) / (p * n))
    assert found.value == auc(labels, scores)
    assert found.standard_error == pytest.approx(expected, rel=0.2)
    assert found.low < found.value < found.high


def test_rows_of_one_user_are_drawn_together() -> None:
    labels, scores = clicks(300)
    alone = auc_bootstrap(labels, scores, np.arange(300))
    copies = auc_bootstrap(np.tile(labels, 9), np.tile(scores, 9), np.tile(np.arange(300), 9))
    assert copies.standard_error == pytest.approx(alone.standard_error)


def test_a_paired_difference_of_equal_models_is_exactly_zero() -> None:
    labels, scores = clicks(300)
    found = auc_bootstrap(labels, scores, np.arange(300), baseline=scores * 2)
    assert (found.value, found.standard_error) == (0.0, 0.0)


def test_pairing_removes_what_two_models_share() -> None:
    labels, scores = clicks(1000)
    rival = scores + np.random.default_rng(5).normal(0, 0.2, 1000)
    paired = auc_bootstrap(labels, scores, np.arange(1000), baseline=rival).standard_error
    assert paired < auc_bootstrap(labels, scores, np.arange(1000)).standard_error / 2


def test_what_few_items_decide_is_no_surer_for_many_users() -> None:
    """One model knows the better half of six items, by luck or not: six draws, however many users confirm them."""
    generator = np.random.default_rng(3)
    items = generator.integers(0, 6, 4000)
    labels = (generator.random(4000) < np.where(items < 3, 0.6, 0.4)).astype(float)
    scores, other, users = (items < 3).astype(float), (items % 2).astype(float), np.arange(4000)
    by_user = auc_bootstrap(labels, scores, users, baseline=other).standard_error
    by_item = auc_bootstrap(labels, scores, items, baseline=other).standard_error
    both = auc_bootstrap(labels, scores, users, items=items, baseline=other).standard_error
    assert by_item > 3 * by_user
    assert both == pytest.approx(by_item, rel=0.3)


def test_undefined_cases_are_refused() -> None:
    labels, scores = clicks(50)
    with pytest.raises(OneClassError):
        auc_bootstrap(np.zeros(50), scores, np.arange(50))
    with pytest.raises(DataError, match="found 1"):
        auc_bootstrap(labels, scores, np.zeros(50))
    with pytest.raises(DataError, match="draws hold both classes"):
        auc_bootstrap(labels, scores, np.arange(50), draws=1)


def world(seed: int = 1, users: int = 80, rows: int = 3000):
    draw = np.random.default_rng(seed)
    user, truth = draw.integers(users, size=rows), draw.normal(size=rows)
    labels = (draw.random(rows) < 1 / (1 + np.exp(-truth))).astype(float)
    return labels, truth, user, draw


def test_the_difference_is_that_of_the_two_gaucs():
    labels, truth, user, draw = world()
    rival = truth + draw.normal(size=len(truth))
    found = gauc_difference(labels, truth, rival, user)
    better, worse = (gauc(labels, scores, user).value for scores in (truth, rival))
    assert better is not None
    assert worse is not None
    assert found.value == pytest.approx(better - worse)
    assert 0 < found.low < found.value < found.high


def test_a_model_against_itself_differs_by_nothing():
    labels, truth, user, _ = world()
    assert gauc_difference(labels, truth, truth * 2 + 1, user)[:1] == (0.0,)
    assert gauc_difference(labels, truth, truth, user).low == 0.0


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """Rivals of equal quality: 0 lies inside about 95 of 100 intervals."""
    covered = 0
    for seed in range(60):
        labels, truth, user, draw = world(seed, users=60, rows=900)
        one, other = truth + draw.normal(size=900), truth + draw.normal(size=900)
        found = gauc_difference(labels, one, other, user, draws=200)
        covered += found.low <= 0 <= found.high
    assert covered >= 50


def test_users_of_one_class_cannot_be_compared():
    with pytest.raises(OneClassError, match="of both classes"):
        gauc_difference(np.array([1.0, 0.0, 1.0]), np.arange(3.0), np.arange(3.0), np.arange(3))


def test_calibration_is_predictions_over_clicks_with_an_interval():
    labels, truth, user, _ = world()
    probabilities = 1 / (1 + np.exp(-truth))
    found = calibration_interval(labels, probabilities, user)
    assert found.value == pytest.approx(probabilities.sum() / labels.sum())
    assert found.low < 1 < found.high
    assert calibration_interval(labels, probabilities / 2, user).high < 0.6
    with pytest.raises(OneClassError, match="positive"):
        calibration_interval(labels * 0, probabilities, user)


def test_the_error_of_a_mean_is_the_textbooks_and_grows_where_a_users_rows_are_alike() -> None:
    values = np.random.default_rng(1).normal(2.0, 3.0, 4000)
    alone = mean_bootstrap(values, np.arange(4000), draws=400, seed=1)
    assert alone.value == pytest.approx(values.mean())
    assert alone.standard_error == pytest.approx(3.0 / 4000**0.5, rel=0.15)
    alike = mean_bootstrap(np.repeat(values[:400], 10), np.repeat(np.arange(400), 10), draws=400, seed=1)
    assert alike.standard_error == pytest.approx(3.0 / 400**0.5, rel=0.15)
    with pytest.raises(DataError, match="found 1"):
        mean_bootstrap(values, np.zeros(4000))
