from __future__ import annotations

import numpy as np

from serving.bundle.item_set import ItemSet
from serving.channels.open_items import OpenItems, distinct


def test_distinct_keeps_the_first() -> None:
    assert distinct(np.array([3, 1, 3, 2, 1])).tolist() == [3, 1, 2]


def test_what_was_seen_has_come_or_is_not_allowed_is_closed() -> None:
    allowed = ItemSet.of(np.array([0, 1, 2, 3, 4, 5, 6, 7]) != 6)
    with OpenItems([], 8, allowed, seen=np.array([0])) as items:
        assert items.has(np.arange(8)).tolist() == [False, True, True, True, True, True, False, True]
        assert items.take(np.array([0, 6, 5, 1, 2]), 2).tolist() == [5, 1]
        assert items.close(np.array([3])).tolist() == [3]
        assert items.take(np.arange(8), 8).tolist() == [2, 4, 7]


def test_flags_go_back_as_they_came_also_after_an_error() -> None:
    pool = [np.zeros(5, dtype=bool)]
    flags = pool[0]
    try:
        with OpenItems(pool, 5, None, seen=np.array([1])) as items:
            items.take(np.array([2, 3]), 2)
            assert not pool
            raise ValueError
    except ValueError:
        pass
    assert pool[0] is flags
    assert not flags.any()
