from __future__ import annotations

import numpy as np
import pytest

from contracts.bundle.bundle import load_weights, save_weights
from models.retrieval import user_states
from models.retrieval.user_states import Solved, Summed

TABLE = np.arange(10, dtype=np.float32).reshape(5, 2) / 7


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_items_are_summed_each_once(power):
    found = Summed(TABLE, power)(np.array([3, 2, 3]))
    assert found == pytest.approx((TABLE[3] + TABLE[2]) / 2 ** power)


def test_solved_is_the_least_squares_of_all_cells():
    gram = TABLE.astype(float).T @ TABLE + 0.5 * np.eye(2)
    weight, wanted = np.ones(5), np.zeros(5)
    weight[[2, 4]], wanted[[2, 4]] = 3.0, 1
    right = np.linalg.solve(TABLE.T @ (weight[:, None] * TABLE) + 0.5 * np.eye(2), TABLE.T @ (weight * wanted))
    assert Solved(TABLE, gram, 3.0)(np.array([4, 2, 4])) == pytest.approx(right, rel=1e-5)


@pytest.mark.parametrize("state", [Summed(TABLE, 0.5), Solved(TABLE, np.eye(2), 2.0)])
def test_a_state_comes_back_from_its_file(tmp_path, state):
    save_weights(tmp_path / "weights", {"items": TABLE, **state.arrays()})
    again, items = user_states.read(load_weights(tmp_path / "weights")), np.array([2, 4])
    assert type(again) is type(state)
    np.testing.assert_array_equal(again(items), state(items))


@pytest.mark.parametrize("make", [lambda n: Summed(TABLE, 1.0, n), lambda n: Solved(TABLE, np.eye(2), 2.0, n)])
def test_the_latest_items_are_read(make):
    np.testing.assert_array_equal(make(2)(np.array([1, 2, 3])), make(9)(np.array([2, 3])))
