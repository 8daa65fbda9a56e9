from __future__ import annotations

import numpy as np

from contracts.features.vocabulary import Vocabulary
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.growing_items import GrowingItems
from serving.item_counters.group_slots import GroupSlots
from serving.item_counters.item_slots import NOBODY


def test_items_of_a_group_share_its_slot(loaded: LoadedBundle) -> None:
    groups = np.full(len(loaded.items), -1, dtype=np.int32)
    groups[[2, 5]], groups[3] = 1, 0
    items = GrowingItems(loaded.items, 8)
    slots = GroupSlots(items, groups)
    new = items.add("new")
    slots.link()
    keys = [loaded.items.key(row) for row in (2, 5, 3, 4)]
    assert slots.of([*keys, "new", "other"]).tolist() == [2, 2, 1, NOBODY, NOBODY, NOBODY]
    assert slots.of([]).tolist() == []
    assert slots.of_row[[2, 5, 3, 4, new, -1]].tolist() == [2, 2, 1, 0, 0, 0]
    assert slots.count == 3


def test_slots_of_other_groups_or_items_are_told_apart(loaded: LoadedBundle) -> None:
    groups = np.zeros(len(loaded.items), dtype=np.int32)
    slots, moved = GroupSlots(loaded.items, groups), groups.copy()
    moved[3] = -1
    others = Vocabulary.of([f"other {row:02}" for row in range(len(groups))], "string")
    elsewhere = GroupSlots(FeatureStore(others, loaded.items.ids, loaded.items.dense), groups)
    assert slots.mark == GroupSlots(GrowingItems(loaded.items, 8), groups.copy()).mark
    assert len({slots.mark, GroupSlots(loaded.items, moved).mark, elsewhere.mark}) == 3
    assert slots.names()() == []
