from __future__ import annotations

import math

import numpy as np
import pytest

from pipelines.marketplace.moods import Moods

CATEGORIES = np.array([0, 1, 2, 1, 0])
MOODS = Moods(first=np.array([0, 1]), second=np.array([1, 1]), categories=CATEGORIES, strength=2.0)


def test_an_hour_begins_with_the_first_category_and_ends_with_the_second() -> None:
    assert MOODS.addend(0, 0.0) == pytest.approx([2, 0, 0, 0, 2])
    assert MOODS.addend(0, 60.0) == pytest.approx([0, 2, 0, 2, 0])
    assert MOODS.addend(0, 30.0) == pytest.approx(np.array([1, 1, 0, 1, 1]) * math.sqrt(2))


def test_at_every_minute_the_two_together_are_as_strong() -> None:
    for minute in np.linspace(0, 60, 7):
        first, second = MOODS.addend(0, minute)[:2]
        assert first**2 + second**2 == pytest.approx(4.0)


def test_categories_are_drawn_by_their_items_and_one_seed_draws_the_same() -> None:
    many = np.repeat([0, 1], [900, 100])
    found = Moods.drawn(5_000, many, 1.0, np.random.default_rng(3))
    again = Moods.drawn(5_000, many, 1.0, np.random.default_rng(3))
    np.testing.assert_array_equal(found.first, again.first)
    for drawn in (found.first, found.second):
        assert np.mean(drawn == 1) == pytest.approx(0.1, abs=0.02)
    assert np.mean((found.first == 1) & (found.second == 1)) == pytest.approx(0.01, abs=0.006)  # independent
