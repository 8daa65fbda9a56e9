from __future__ import annotations

import numpy as np

from serving.bundle.item_set import ItemSet
from serving.changing_index.index_snapshot import Snapshot, living_places, open_parts

SIZE, BASE = 40, 24


def drawn(seed: int, share: float) -> np.ndarray:
    return np.random.default_rng(seed).random(SIZE) < share


def snapshot(shown: np.ndarray, in_base: np.ndarray, in_merged: np.ndarray) -> Snapshot:
    sets = [ItemSet.of(flags) for flags in (shown, in_base, in_merged)]
    return Snapshot(base=BASE, shown=sets[0], in_base=sets[1], in_merged=sets[2], merged=None,
                    whole=open_parts(sets[0], sets[1], sets[2], BASE), rows=np.array([3, -1, 30, 5]),
                    vectors=np.zeros((4, 2), dtype=np.float32))


def test_items_lie_where_their_vectors_are_and_only_open_ones_are_found() -> None:
    shown, in_merged, allowed = drawn(1, 0.8), drawn(3, 0.5), drawn(4, 0.6)
    in_base = drawn(2, 0.5) & (np.arange(SIZE) < BASE)
    now = snapshot(shown, in_base, in_merged)
    parts = now.parts(ItemSet.of(allowed))
    np.testing.assert_array_equal(parts.all.rows(), np.flatnonzero(shown & allowed))
    np.testing.assert_array_equal(parts.base.rows(), np.flatnonzero(shown & allowed & in_base))
    np.testing.assert_array_equal(parts.merged.rows(), np.flatnonzero(shown & allowed & in_merged))
    assert parts.base.size == BASE


def test_without_a_filter_the_parts_are_those_that_were_made_once() -> None:
    now = snapshot(drawn(1, 0.8), drawn(2, 0.5) & (np.arange(SIZE) < BASE), drawn(3, 0.5))
    assert now.parts(None) is now.parts(now.shown) is now.whole


def test_of_the_latest_those_live_that_are_open_and_not_replaced() -> None:
    open_ = np.ones(SIZE, dtype=bool)
    open_[5] = False
    assert living_places(np.array([3, -1, 30, 5]), ItemSet.of(open_)).tolist() == [0, 2]
    assert snapshot(open_, open_ & (np.arange(SIZE) < BASE), open_).living.tolist() == [0, 2]
