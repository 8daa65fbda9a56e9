from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.cross_search.downstream_model import DownstreamModel, compared
from tests.models.crossed_world import crossed_columns, parity_logit

PLANTED = frozenset({0, 3})


@pytest.fixture(scope="module")
def model() -> DownstreamModel:
    train, validation, test = (crossed_columns(parity_logit(0, 3), rows=4000, seed=seed) for seed in range(3))
    return DownstreamModel(
        train=train, validation=validation, test=test, base_ridges=(2.0, 8.0), cross_ridges=(2.0, 8.0))


def test_the_planted_cross_gains_beyond_its_interval_and_noise_does_not(model: DownstreamModel) -> None:
    base, label = model.without_crosses(), model.test.label
    planted, noise = (compared(model.with_crosses([cross], base.base_ridge), base, label, 50, 0)
                      for cross in (PLANTED, frozenset({1, 5})))
    assert planted.gain is not None
    assert planted.gain_low is not None
    assert planted.gain_high is not None
    assert noise.gain_low is not None
    assert planted.gain_low > 0.01
    assert noise.gain_low < 0.003
    assert planted.gain_low <= planted.gain <= planted.gain_high


def test_penalties_are_chosen_on_validation(model: DownstreamModel) -> None:
    base = model.without_crosses()
    alone = [replace(model, base_ridges=(ridge,)).without_crosses() for ridge in (2.0, 8.0)]
    assert base.validation_loss == min(variant.validation_loss for variant in alone)


def test_the_test_labels_choose_nothing(model: DownstreamModel) -> None:
    test = model.test
    flipped = replace(model, test=test.take(np.arange(test.rows)))
    flipped.test.label[:] = 1 - flipped.test.label
    one, other = model.without_crosses(), flipped.without_crosses()
    np.testing.assert_array_equal(one.test_logits, other.test_logits)
    assert other.auc == pytest.approx(1 - one.auc)


def test_hashing_bounds_the_keys(model: DownstreamModel) -> None:
    assert model.with_crosses([PLANTED], 4.0, buckets=5).keys == 5
