from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import OneClassError
from models.evaluation.gauc_bootstrap import calibration_interval, gauc_difference
from models.evaluation.metrics import gauc


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
