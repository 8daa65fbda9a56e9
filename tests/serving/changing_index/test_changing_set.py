from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.bundle.item_set import ItemSet
from serving.changing_index.changing_set import ChangingSet


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 70), st.integers(0, 2**32 - 1))
def test_bits_are_those_of_the_members(size: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    members = draw.random(size) < 0.5
    found, earlier = ChangingSet(members), list[tuple[ItemSet, np.ndarray]]()
    for _ in range(5):
        earlier.append((found.taken(), members.copy()))
        rows, flags = draw.integers(0, size, draw.integers(0, 9)), draw.random() < 0.5
        members[rows] = flags
        found.put(rows, flags)
        np.testing.assert_array_equal(found.members, members)
        np.testing.assert_array_equal(found.taken().bits, ItemSet.of(members).bits)
    for taken, then in earlier:  # what was taken does not change
        np.testing.assert_array_equal(taken.bits, ItemSet.of(then).bits)


def test_nothing_is_copied_until_something_is_put() -> None:
    found = ChangingSet(np.ones(20, dtype=bool))
    first = found.taken()
    found.put(np.empty(0, dtype=np.int64), False)
    assert found.taken() is first
    found.put(np.array([19, 3]), np.array([False, True]))
    assert found.taken() is not first
    assert (found.taken().size, found.taken().count) == (20, 19)
    with pytest.raises(IndexError):
        found.put(np.array([20]), False)
