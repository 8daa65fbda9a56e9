from __future__ import annotations

import numpy as np
import pytest

from sluice.init.held_out import TELLING, said_of

ROWS = 6000


def label(strength: np.ndarray, random: np.random.Generator) -> list[bool]:
    return [bool(one) for one in random.random(len(strength)) < 1 / (1 + np.exp(-strength))]


def test_codes_say_more_as_categories_and_their_neighbours_are_not_alike() -> None:
    random = np.random.default_rng(0)
    codes = random.integers(0, 400, ROWS)
    said = said_of(list(codes), label(random.normal(0, 1.5, 400)[codes], random))
    assert said.as_category
    assert not said.ordered


def test_quantities_say_more_in_bins_and_their_neighbours_are_alike() -> None:
    random = np.random.default_rng(1)
    amounts = random.integers(0, 4000, ROWS)
    said = said_of(list(amounts), label(amounts / 1000 - 2, random))
    assert said.as_quantity
    assert said.ordered


@pytest.mark.parametrize("seed", range(5))
def test_noise_says_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    said = said_of(list(random.integers(0, 300, ROWS)), label(np.zeros(ROWS), random))
    assert max(said.category, said.quantity, said.order) < TELLING
