from __future__ import annotations

import numpy as np
import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.item_counters.counter_features import features_of
from serving.item_counters.item_slots import ItemSlots
from serving.item_counters.key_counters import KeyCounters
from serving.item_counters.recorded_impressions import Recorded
from tests.serving.counted_items import WINDOW
from tests.serving.recorded_events import SECOND, START, recorded_features


@pytest.fixture
def counters(counted: LoadedBundle) -> KeyCounters:
    features = recorded_features()
    return KeyCounters(features_of(features.of_side("item"), counted.encoder), features, counted.encoder,
                       ItemSlots(counted.items))


def shown(bundle: LoadedBundle, *rows: int, at: int = START) -> Recorded:
    return Recorded([(bundle.items.key(row), at, at, None) for row in rows], [])


def seen(counters: KeyCounters, row: int) -> float | None:
    ids, dense = np.zeros((1, 20), np.int32), np.full((1, 1), np.nan, np.float32)
    counters.columns.write(np.array([row]), ids, dense)
    return None if np.isnan(dense[0, 0]) else float(dense[0, 0] * 2 + 4)


def test_requests_see_what_is_published_once_the_window_is_whole(counters: KeyCounters, counted: LoadedBundle) -> None:
    counters.add(shown(counted, 3, 3, 5))
    counters.advance(START + SECOND)
    counters.publish(START + SECOND, START)
    assert seen(counters, 3) is None
    counters.add(shown(counted, 3, at=START + 30 * SECOND))
    counters.advance(START + 31 * SECOND)
    counters.publish(START + WINDOW * SECOND, START)  # counted as of before
    assert [seen(counters, row) for row in (3, 5, 7)] == [3, 1, 0]
    counters.advance(START + WINDOW * SECOND)
    assert [seen(counters, row) for row in (3, 5, 7)] == [3, 1, 0]
    counters.publish(START + WINDOW * SECOND, START)
    assert [seen(counters, row) for row in (3, 5, 7)] == [1, 0, 0]


def test_items_with_something_counted_are_counted(counters: KeyCounters, counted: LoadedBundle) -> None:
    found = []
    for rows, second in (((3, 5, 3), 1), ((7,), 2), ((), WINDOW), ((), WINDOW + 2)):
        counters.add(shown(counted, *rows, at=START + (second - 1) * SECOND))
        counters.advance(START + second * SECOND)
        found.append(counters.alive)
    assert found == [2, 3, 1, 0]


def test_there_is_room_for_more_items_than_there_was_at_first(counters: KeyCounters, counted: LoadedBundle) -> None:
    many = 5000
    counters.add(Recorded([(f"unknown {number}", START, START, None) for number in range(many)], []))
    counters.add(shown(counted, 4))
    counters.advance(START + SECOND)
    counters.publish(START + SECOND, START - WINDOW * SECOND)
    assert counters.alive == many + 1
    assert [seen(counters, row) for row in (4, 5)] == [1, 0]


def test_what_could_not_be_shown_is_shown_the_next_time(
    counters: KeyCounters, counted: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters.advance(START)
    counters.publish(START, 0)
    counters.add(shown(counted, 3))
    counters.advance(START + SECOND)

    def fails(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(counters.columns, "publish", fails)
        with pytest.raises(MemoryError):
            counters.publish(START + SECOND, 0)
    assert seen(counters, 3) == 0
    counters.publish(START + SECOND, 0)
    assert seen(counters, 3) == 1


def test_begun_again_it_counts_from_nothing_and_shows_all(counters: KeyCounters, counted: LoadedBundle) -> None:
    counters.add(shown(counted, 3, 3, 5))
    counters.advance(START + SECOND)
    counters.publish(START + SECOND, 0)
    counters.begin_again()
    assert [seen(counters, row) for row in (3, 5)] == [2, 1]
    counters.add(shown(counted, 5, 5, 7))
    counters.advance(START + SECOND)
    counters.publish(START + SECOND, 0)
    assert [seen(counters, row) for row in (3, 5, 7)] == [0, 2, 1]
    assert (counters.alive, len(counters.counts)) == (2, 3)
