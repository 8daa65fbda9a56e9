from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from serving.bundle.best_first import best_first


@given(st.lists(st.integers(-3, 3), max_size=20), st.integers(1, 25), st.integers(0, 2**32 - 1))
def test_best_first_is_a_stable_sort(values: list[int], keep: int, seed: int) -> None:
    rows = np.random.default_rng(seed).permutation(len(values))
    expected = sorted(range(len(values)), key=lambda i: (-values[i], rows[i]))[:keep]
    assert best_first(np.array(values, dtype=np.float64), rows, keep).tolist() == expected


def test_minus_infinity_comes_last() -> None:
    assert best_first(np.array([-np.inf, 1.0, -np.inf, 0.0]), np.arange(4), 3).tolist() == [1, 3, 0]
