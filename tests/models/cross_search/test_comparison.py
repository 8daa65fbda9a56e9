from __future__ import annotations

import numpy as np
import pytest

from models.cross_search.comparison import Consumer, compared
from tests.models.crossed_world import crossed_columns, parity_logit

PLANTED = frozenset({0, 3})


@pytest.fixture(scope="module")
def consumer() -> Consumer:
    train, validation, test = (crossed_columns(parity_logit(0, 3), rows=4000, seed=seed) for seed in range(3))
    return Consumer(train, validation, test, base_ridges=(2.0, 8.0), cross_ridges=(2.0, 8.0))


def test_the_planted_cross_gains_beyond_its_interval_and_noise_does_not(consumer: Consumer) -> None:
    base, label = consumer.without(), consumer.test.label
    planted, noise = (compared(consumer.with_crosses([cross], base.base_ridge), base, label, 50, 0)
                      for cross in (PLANTED, frozenset({1, 5})))
    assert planted["gain_low"] > 0.01
    assert noise["gain_low"] < 0.003
    assert planted["gain_low"] <= planted["gain"] <= planted["gain_high"]
    assert "test_logits" not in planted


def test_penalties_are_chosen_on_validation(consumer: Consumer) -> None:
    base = consumer.without()
    alone = [Consumer(consumer.train, consumer.validation, consumer.test, (ridge,)).without() for ridge in (2.0, 8.0)]
    assert base.validation_loss == min(arm.validation_loss for arm in alone)


def test_the_test_labels_choose_nothing(consumer: Consumer) -> None:
    test = consumer.test
    flipped = Consumer(consumer.train, consumer.validation, test.take(np.arange(test.rows)), (2.0, 8.0), (2.0, 8.0))
    flipped.test.label[:] = 1 - flipped.test.label
    one, other = consumer.without(), flipped.without()
    np.testing.assert_array_equal(one.test_logits, other.test_logits)
    assert other.auc == pytest.approx(1 - one.auc)


def test_hashing_bounds_the_keys(consumer: Consumer) -> None:
    assert consumer.with_crosses([PLANTED], 4.0, buckets=5).keys == 5
