from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from serving.bundle.item_set import ItemSet

MEMBERS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


@given(MEMBERS)
def test_bits_say_what_the_members_say(pairs: list[tuple[bool, bool]]) -> None:
    left, right = np.array(pairs).T
    sets = {"left": (ItemSet.of(left), left), "both": (ItemSet.of(left) & ItemSet.of(right), left & right),
            "either": (ItemSet.of(left) | ItemSet.of(right), left | right),
            "others": (ItemSet.of(left).complement(), ~left)}
    for found, expected in sets.values():
        assert found.rows().tolist() == np.flatnonzero(expected).tolist()
        assert found.contains(np.arange(len(expected))).tolist() == expected.tolist()
        assert found.count == expected.sum()
        assert found.size == len(expected)


@given(MEMBERS)
def test_the_first_items_of_a_set(pairs: list[tuple[bool, bool]]) -> None:
    members = np.array(pairs)[:, 0]
    for size in range(len(members) + 1):
        cut = ItemSet.of(members).cut(size)
        assert (cut.rows().tolist(), cut.size) == (np.flatnonzero(members[:size]).tolist(), size)


@given(MEMBERS)
def test_a_set_without_some(pairs: list[tuple[bool, bool]]) -> None:
    left, right = np.array(pairs).T
    found = ItemSet.of(left).without(np.flatnonzero(right))
    assert (found.rows().tolist(), found.size) == (np.flatnonzero(left & ~right).tolist(), len(left))


@given(st.sets(st.integers(0, 9_999), max_size=60))
def test_a_narrow_set_of_many_items(rows: set[int]) -> None:
    members = np.zeros(10_000, dtype=bool)
    members[list(rows)] = True
    assert ItemSet.of(members).rows().tolist() == sorted(rows)


def test_nobody() -> None:
    assert ItemSet.of(np.zeros(9, dtype=bool)).rows().tolist() == []
    assert ItemSet.of(np.zeros(9, dtype=bool)).contains(np.empty(0, dtype=np.int64)).tolist() == []
