from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from serving.events.event import Event
from serving.events.event_store import EventStore
from serving.item_counters import recorded_impressions
from serving.item_counters.recorded_impressions import RecordedImpressions, Row
from tests.serving.recorded_events import (
    SECOND,
    START,
    SetClock,
    click_event,
    recorded_features,
    reordered,
    shown_event,
    store_at,
)

MIDNIGHT = START // (86_400 * SECOND) * 86_400 * SECOND


@pytest.fixture
def store(tmp_path: Path) -> EventStore:
    clock = SetClock()
    clock.now += 60 * SECOND
    return store_at(tmp_path, clock)


def joined(store: EventStore, batches: list[list[Event]]) -> dict[str, int | None]:
    """Item -> which event its first click was, from 0, None without; however the events come in turns."""
    read, seen, found = RecordedImpressions(store, recorded_features()), 0, dict[str, Row]()
    for batch in batches:
        store.record([batch])
        recorded = read.between(seen, store.newest)
        assert not [row for row in recorded.shown if row[0] in found]
        found |= {row[0]: row for row in recorded.shown}
        for row in recorded.clicked:
            assert found[row[0]][3] is None
            found[row[0]] = row
        seen = store.newest
    first: int = store.connection.execute("SELECT min(known) FROM events").fetchone()[0]
    return {item: None if row[3] is None else row[3] - first for item, row in found.items()}


def test_a_click_joins_what_it_is_of_whichever_is_read_first(store: EventStore) -> None:
    shown = [shown_event(name, START, item=f"i{name}") for name in "abc"]
    clicks = [click_event(name, START + SECOND, item=f"i{name}") for name in "bc"]
    assert joined(store, [[clicks[1]], shown, [clicks[0]]]) == {"ia": None, "ib": 4, "ic": 0}


def test_of_several_clicks_the_first_known_counts_and_those_beyond_the_window_do_not(store: EventStore) -> None:
    shown = shown_event("a", START)
    clicks = [click_event("a", START + after * SECOND, name=str(after)) for after in (-1, 11, 9, 0)]
    assert joined(store, [[shown], [clicks[0]], [clicks[1]], clicks[2:]]) == {"i": 3}
    late = [shown_event("b", START, item="j"), click_event("b", START, item="j")]
    assert joined(store, [late, [click_event("b", START + SECOND, item="j", name="again")]])["j"] == 6


def test_a_click_with_what_is_no_number_to_the_store_counts_and_holds_up_none(store: EventStore) -> None:
    click = click_event("a", START)
    odd = replace(click, columns={**click.columns, "price": float("nan")})
    assert joined(store, [[shown_event("a", START)], [odd]]) == {"i": 1}


def test_a_click_after_midnight_is_of_an_impression_before_it(store: EventStore) -> None:
    shown, click = shown_event("a", MIDNIGHT - SECOND), click_event("a", MIDNIGHT + SECOND)
    assert joined(store, [[shown], [click]]) == {"i": 1}


def test_a_repeated_impression_counts_once(store: EventStore) -> None:
    again = shown_event("a", START + SECOND, name="again")
    assert joined(store, [[shown_event("a", START)], [again]]) == {"i": None}


def test_a_click_beside_a_reordered_key_is_of_the_impression_before(store: EventStore, tmp_path: Path) -> None:
    store.record([[shown_event("a", START)]])
    later = reordered(recorded_features())
    with closing(EventStore(tmp_path, later, lambda: START + 60 * SECOND)) as other:
        other.record([[click_event("a", START + SECOND)]])
        (row,) = RecordedImpressions(other, later).between(1, 2).clicked
    assert row[0] == "i"


def test_a_click_of_another_key_is_of_nothing(store: EventStore) -> None:
    """It was recorded beside a bundle whose log had one."""
    other = click_event("a", START)
    store.record([[shown_event("a", START), other]])
    store.connection.execute("UPDATE events SET columns = '{}' WHERE kind = 2")
    assert RecordedImpressions(store, recorded_features()).between(1, 2) == ([], [])


def test_when_the_last_event_up_to_a_number_was_known(store: EventStore) -> None:
    read = RecordedImpressions(store, recorded_features())
    assert read.known(9) == 0
    for number in range(20):
        store.record([[shown_event(str(number), START)]])
    store.connection.execute("DELETE FROM events WHERE seq < 5")
    known = dict(store.connection.execute("SELECT seq, known FROM events"))
    assert (read.known(4), read.known(7), read.known(99)) == (0, known[7], known[20])


@pytest.mark.parametrize("query", ["SHOWN", "CLICKS", "CLICKED"])
def test_what_is_read_is_what_lies_between_two_numbers(store: EventStore, query: str) -> None:
    asked = getattr(recorded_impressions, query)
    limits = {"first": 1, "last": 2, "window": 1, "told": "[]"}
    steps = [step for *_, step in store.connection.execute(f"EXPLAIN QUERY PLAN {asked}", limits)]
    assert not [step for step in steps if "TEMP B-TREE" in step or (step.startswith("SCAN") and "VIRTUAL" not in step)]
    assert "INTEGER PRIMARY KEY" in steps[1 if query == "CLICKED" else 0]
