from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import DataError
from contracts.features.vocabulary import Vocabulary
from serving.bundle.feature_store import FeatureStore
from serving.catalogue.growing_items import GrowingItems


def items(room: int = 8) -> GrowingItems:
    ids = np.arange(12, dtype=np.int32).reshape(4, 3)
    return GrowingItems(FeatureStore(Vocabulary.of(["a", "b", "c"], "string"), ids, ids.astype(np.float32)), room)


def test_new_items_have_rows_behind_the_bundles() -> None:
    found = items()
    rows = [found.add("new"), found.add("newer")]
    assert rows == [8, 9]
    asked = ["b", "newer", "nobody", "new"]
    assert found.rows(asked).tolist() == [found.row(one) for one in asked] == [1, 9, -1, 8]
    assert found.keys_of(np.array([9, 0, 8])) == ["newer", "a", "new"]
    assert (found.key(2), found.key(8)) == ("c", "new")
    assert (found.stored, found.added, found.room, len(found)) == (3, 2, 6, 16)


def test_the_last_row_is_of_an_item_of_which_nothing_is_known() -> None:
    found = items()
    np.testing.assert_array_equal(found.ids[-1], [9, 10, 11])
    np.testing.assert_array_equal(found.ids[:3], np.arange(9).reshape(3, 3))


def test_no_more_than_there_is_room_for() -> None:
    found = items()
    for number in range(8):
        found.add(f"n{number}")
    with pytest.raises(DataError, match="room for 8 new items"):
        found.add("one more")
