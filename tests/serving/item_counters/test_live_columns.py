from __future__ import annotations

import numpy as np
import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.item_counters.counter_features import CounterEncoder, CounterFeature, features_of
from serving.item_counters.item_slots import ItemSlots
from serving.item_counters.live_columns import LiveColumns
from tests.serving.recorded_events import recorded_features

ROWS = np.array([1, -1, 2])


@pytest.fixture
def features(counted: LoadedBundle) -> tuple[CounterFeature, ...]:
    return tuple(features_of(recorded_features().of_side("item"), counted.encoder))


@pytest.fixture
def slots(counted: LoadedBundle) -> ItemSlots:
    return ItemSlots(counted.items)


@pytest.fixture
def live(counted: LoadedBundle, features: tuple[CounterFeature, ...], slots: ItemSlots) -> LiveColumns:
    return LiveColumns(features, CounterEncoder(features, counted.encoder, 0.0), slots)


def written(live: LiveColumns) -> list[float]:
    """The counter of ROWS, which stood at -99, with its id where it is written."""
    ids, dense = np.full((3, 6), -99, np.int32), np.full((3, 1), -99.0, np.float32)
    live.write(ROWS, ids, dense)
    assert ((ids != -99).any(axis=0) <= np.isin(np.arange(6), live.ids)).all()
    np.testing.assert_array_equal(ids[:, live.ids[0]] != -99, dense[:, 0] != -99)
    return [value if value == -99 else value * 2 + 4 for value in dense[:, 0].tolist()]  # mean 4, std 2


def test_nothing_is_written_before_something_is_published(live: LiveColumns) -> None:
    assert written(live) == [-99, -99, -99]


def test_counts_are_written_of_all_items_but_unknown_ones(
    live: LiveColumns, slots: ItemSlots, counted: LoadedBundle, features: tuple[CounterFeature, ...]
) -> None:
    """Of an item without events they are 0."""
    first, = slots.of([counted.items.key(1)]).tolist()
    counts = np.zeros((2, 1), np.int32)
    counts[first] = 3
    live.publish(counts, np.array([first]), features)
    assert written(live) == [3, -99, 0]
    second, = slots.of([counted.items.key(2)]).tolist()
    assert written(live) == [3, -99, 0]  # its slot is given, and nothing published of it
    counts = np.array([[0], [4], [5], [0]], np.int32)
    live.publish(counts, np.array([second]), features)
    assert written(live) == [3, -99, 5]  # of the first nothing was said to have changed
    live.publish(counts, np.array([first]), features)
    assert written(live) == [4, -99, 5]


def test_columns_come_and_all_that_was_counted_with_them(
    live: LiveColumns, slots: ItemSlots, counted: LoadedBundle, features: tuple[CounterFeature, ...]
) -> None:
    slots.of([counted.items.key(1)])
    nothing = np.empty(0, np.int64)
    live.publish(np.array([[0], [7]], np.int32), nothing, ())
    assert written(live) == [-99, -99, -99]
    live.publish(np.array([[0], [7]], np.int32), nothing, features)
    assert written(live) == [7, -99, 0]
