from __future__ import annotations

import numpy as np

from pipelines.features.prefix_sums import PrefixSums


def test_sums_are_those_of_the_definition() -> None:
    draw = np.random.default_rng(5)
    group, moments, weights = draw.integers(0, 4, 200), draw.integers(-9, 9, 200), draw.integers(-3, 4, 200)
    asked_group, asked = draw.integers(0, 6, 80), draw.integers(-12, 12, 80)
    expected = [int(weights[(group == g) & (moments <= t)].sum()) for g, t in zip(asked_group, asked, strict=True)]
    assert PrefixSums(group, moments, asked_group, asked).of(weights).tolist() == expected


def test_nothing_is_nothing() -> None:
    none, one = np.zeros(0, np.int64), np.ones(1, np.int64)
    assert PrefixSums(none, none, one, one).of(none).tolist() == [0]
    assert PrefixSums(one, one, none, none).of(one).tolist() == []


def test_sums_do_not_overflow_over_any_span() -> None:
    far = np.array([-(2**61), 2**61])
    group, weights = np.array([0, 3_000_000]), np.array([2, 5])
    assert PrefixSums(group, far, group, far).of(weights).tolist() == [2, 5]
    assert PrefixSums(group, far, group, far - 1).of(weights).tolist() == [0, 0]
