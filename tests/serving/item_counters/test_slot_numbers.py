from __future__ import annotations

import numpy as np
import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.item_counters import item_slots
from serving.item_counters.item_slots import ItemSlots
from serving.item_counters.slot_numbers import SlotNumbers
from serving.item_counters.sorted_runs import Columns

NAMES = ["", "i05", "gone", "new", "i03"]


def run(*slots: int) -> Columns:
    """Its first two columns say which row it is."""
    rows = np.arange(len(slots), dtype=np.int64)
    return rows, rows + 100, np.array(slots, dtype=np.int32)


def test_slots_are_given_anew_to_items_that_come(loaded: LoadedBundle) -> None:
    slots = ItemSlots(loaded.items)
    slots.of(["i03"])
    numbers = SlotNumbers(NAMES, slots)
    found = [columns[2].tolist() for columns in numbers.waiting([run(4, 1, 4), run(3, 1)])]
    new, old = slots.of(["new"])[0], slots.of(["i05"])[0]
    assert found == [[1, old, 1], [new, old]]
    assert slots.count == 4  # none of what is gone


def test_rows_of_items_without_room_are_left_out(loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_slots, "MOST_UNKNOWN", 1)
    numbers = SlotNumbers(NAMES, ItemSlots(loaded.items))
    rows, slots, windows = run(2, 1, 3)[0], run(2, 1, 3)[2], np.array([1, 2, 3], dtype=np.uint8)
    (found,) = numbers.leaving([(rows, slots, windows)])
    assert [part.tolist() for part in found] == [[0, 1], [2, 1], [1, 2]]  # asked in the order of the kept slots
    (waiting,) = numbers.waiting([run(2, 1, 3)])
    assert [part.tolist() for part in waiting] == [[0, 1], [100, 101], [2, 1]]


def test_a_slot_that_nobody_had_is_an_error(loaded: LoadedBundle) -> None:
    with pytest.raises(IndexError):
        list(SlotNumbers(NAMES, ItemSlots(loaded.items)).waiting([run(9)]))
