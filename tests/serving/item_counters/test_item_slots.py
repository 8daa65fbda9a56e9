from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.growing_items import GrowingItems
from serving.item_counters import item_slots
from serving.item_counters.item_slots import NOBODY, ItemSlots


def test_an_item_has_a_slot_from_its_first_event_on(loaded: LoadedBundle) -> None:
    slots = ItemSlots(loaded.items)
    found = slots.of(["i05", "i03", "i05"])
    assert sorted(set(found.tolist())) == [1, 2]
    assert found[0] == found[2] == slots.of(["i05"])[0] == slots.of_row[loaded.items.row("i05")]
    assert slots.count == 3
    assert (slots.of_row > 0).sum() == 2
    assert slots.of_row[-1] == 0  # of an item that nobody knows
    assert slots.of([]).tolist() == []


def test_what_was_counted_of_an_item_before_it_was_known_is_its_own(loaded: LoadedBundle) -> None:
    items = GrowingItems(loaded.items, 8)
    slots = ItemSlots(items)
    early, other = slots.of(["new", "i01"]).tolist()
    row = items.add("new")
    items.add("never shown")
    assert slots.of_row[row] == 0
    slots.link()
    assert slots.of_row[row] == early
    assert slots.of(["new", "i01"]).tolist() == [early, other]


class AddedMeanwhile(GrowingItems):
    """An item comes between the link of a turn and its rows, as another thread brings it."""

    coming = ""

    def rows(self, keys: Sequence[str]) -> np.ndarray:
        if self.coming:
            self.add(self.coming)
            self.coming = ""
        return super().rows(keys)


@pytest.mark.parametrize("shown_before", [True, False])
def test_an_item_that_is_added_while_its_events_are_counted_keeps_its_slot(
    loaded: LoadedBundle, shown_before: bool
) -> None:
    items = AddedMeanwhile(loaded.items, 8)
    slots = ItemSlots(items)
    early = slots.of(["i01", "new"] if shown_before else ["i01", "other"]).tolist()
    items.coming = "new"
    found = slots.of(["new", "i01", "new"]).tolist()
    assert found == [early[1] if shown_before else 3, early[0], found[0]]
    slots.link()
    assert slots.of_row[items.row("new")] == slots.of(["new"])[0] == found[0]
    assert slots.count == (3 if shown_before else 4)


def test_of_unknown_items_beyond_a_limit_nothing_is_counted(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(item_slots, "MOST_UNKNOWN", 2)
    slots = ItemSlots(loaded.items)
    assert slots.of(["a", "b", "c", "d", "a"]).tolist() == [1, 2, NOBODY, NOBODY, 1]
    assert slots.of(["i01"]).tolist() == [3]
    assert len([one for one in caplog.records if "more than 2 items" in one.message]) == 1


def test_slots_have_the_names_of_their_items_as_they_were_asked_for(loaded: LoadedBundle) -> None:
    items = GrowingItems(loaded.items, 8)
    slots = ItemSlots(items)
    slots.of(["i05", "new", "i03"])
    names = slots.names()
    items.add("new")
    slots.of(["i07", "new"])
    assert names() == ["", "i05", "new", "i03"]
    assert slots.names()() == ["", "i05", "new", "i03", "i07"]
