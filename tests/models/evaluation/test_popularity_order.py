"""Popularity is a smoothed rate: a few lucky clicks do not beat many, and ties are settled."""

from __future__ import annotations

import numpy as np

from models.evaluation.popularity_order import popularity_order


def test_the_order_is_that_of_the_smoothed_click_rate() -> None:
    draw = np.random.default_rng(0)
    shown = draw.integers(0, 300, 50).astype(np.float64)
    clicks = draw.binomial(shown.astype(int), 0.1).astype(np.float64)
    overall = clicks.sum() / shown.sum()
    rates = [(c + 20 * overall) / (s + 20) for c, s in zip(clicks, shown, strict=True)]
    order = popularity_order(shown, clicks)
    assert sorted(order.tolist()) == list(range(50))
    assert [rates[row] for row in order] == sorted(rates, reverse=True)


def test_one_click_of_one_impression_does_not_beat_many() -> None:
    assert popularity_order(np.array([1.0, 1000.0, 1000.0]), np.array([1.0, 300.0, 10.0])).tolist() == [1, 0, 2]


def test_equal_rates_go_by_impressions_then_by_row() -> None:
    assert popularity_order(np.array([10.0, 40.0, 10.0]), np.array([1.0, 4.0, 1.0])).tolist() == [1, 0, 2]


def test_items_nobody_was_shown_keep_the_order_of_their_rows() -> None:
    assert popularity_order(np.zeros(3), np.zeros(3)).tolist() == [0, 1, 2]
