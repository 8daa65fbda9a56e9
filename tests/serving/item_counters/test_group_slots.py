from __future__ import annotations

import numpy as np

from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.growing_items import GrowingItems
from serving.item_counters.group_slots import GroupSlots


def test_items_of_a_group_count_in_its_row(loaded: LoadedBundle) -> None:
    groups = np.full(len(loaded.items), -1, dtype=np.int32)
    groups[[2, 5]], groups[3] = 1, 0
    items = GrowingItems(loaded.items, 8)
    slots = GroupSlots(items, groups)
    new = items.add("new")
    slots.link()
    keys = [loaded.items.key(row) for row in (2, 5, 3, 4)]
    found = slots.of([*keys, "new", "other"])
    assert len(set(found.tolist())) == 6
    assert slots.counted(found).tolist() == [2, 2, 1]
    assert slots.counted(slots.of([keys[2], "other", keys[0]])).tolist() == [1, 2]
    assert slots.of([]).tolist() == []
    assert slots.of_row[[2, 5, 3, 4, new, -1]].tolist() == [2, 2, 1, 0, 0, 0]
    assert slots.count == 3
    names = slots.names()()
    assert [names[slot] for slot in found.tolist()] == [*keys, "new", "other"]
