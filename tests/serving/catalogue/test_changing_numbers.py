from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from serving.bundle.number_column import BY_ROWS, NumberColumn
from serving.catalogue.changing_numbers import ChangingNumbers

STORED, SIZE = 30, 64
NUMBER = st.floats(0, 9) | st.just(math.nan)


@given(st.lists(NUMBER, min_size=STORED, max_size=STORED),
       st.lists(st.lists(st.tuples(st.integers(0, SIZE - 1), NUMBER), max_size=12), max_size=4),
       st.floats(0, 9), st.floats(0, 9))
def test_a_range_is_true_after_any_changes(
    stored: list[float], batches: list[list[tuple[int, float]]], least: float, most: float
) -> None:
    values = np.concatenate([stored, np.full(SIZE - STORED, math.nan)])
    column = ChangingNumbers(NumberColumn(np.array(stored)), values)
    for batch in batches:
        for row, number in batch:
            values[row] = number
        column.put(np.array([row for row, _ in batch], dtype=np.int64))
        column.publish()
    expected = np.flatnonzero((values >= least) & (values <= most))
    assert column.within(least, most).rows().tolist() == expected.tolist()


def test_what_is_put_is_found_once_it_is_published() -> None:
    values = np.full(SIZE, math.nan)
    values[:4] = 1.0
    column = ChangingNumbers(NumberColumn(values[:4].copy()), values)
    few = np.array([2, 9])
    assert len(few) < BY_ROWS * SIZE
    values[few] = 5.0
    column.put(few)
    assert column.within(1.0, 2.0).rows().tolist() == [0, 1, 2, 3]
    column.publish()
    assert column.within(1.0, 2.0).rows().tolist() == [0, 1, 3]
    assert column.within(5.0, 5.0).rows().tolist() == [2, 9]
