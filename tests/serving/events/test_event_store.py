from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.errors import DataError
from serving.events import event_store
from serving.events.event import Kind, encoded
from serving.events.event_store import FILE, MOST_CLICKS, EventStore
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


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def store(tmp_path: Path, clock: SetClock) -> EventStore:
    return store_at(tmp_path, clock)


def known(store: EventStore) -> list[tuple[str, int, int]]:
    asked = "SELECT id, at - :start, known - :start FROM events ORDER BY seq"
    return store.connection.execute(asked, {"start": START}).fetchall()


def test_known_times_rise_even_where_the_clock_stands_or_goes_back(store: EventStore, clock: SetClock) -> None:
    store.record([[shown_event("a", None), shown_event("b", START - 5)], [shown_event("c", START + SECOND)]])
    clock.now -= SECOND
    store.record([[shown_event("d", None)]])
    assert known(store) == [("shown a", 0, 1), ("shown b", -5, 2), ("shown c", 2, 3), ("shown d", 3, 4)]


def test_by_halves_the_first_event_after_a_moment(store: EventStore) -> None:
    assert (store.first_after(0), store.forgotten) == (0, 0)
    for number in range(20):
        store.record([[shown_event(str(number), START)]])
    store.connection.execute("DELETE FROM events WHERE seq < 5")
    when = dict(store.connection.execute("SELECT seq, known FROM events"))
    assert (store.first_after(0), store.forgotten) == (4, 4)
    assert [store.first_after(when[seq] - 1) for seq in (6, 13, 20)] == [5, 12, 19]
    assert store.first_after(when[20]) == store.newest


def test_it_knows_the_columns_of_all_bundles_by_the_last_of_their_types(tmp_path: Path, clock: SetClock) -> None:
    older = recorded_features()
    newer = older.model_copy(update={"columns": {"place": "integer", "mood": "text"}})
    for features in (older, newer):
        EventStore(tmp_path, features, clock).close()
    store = EventStore(tmp_path, newer, clock)
    keys = dict.fromkeys(("request", "iid"), "text")
    assert store.columns == {"age": "integer", "price": "number", "new": "flag", **keys, "place": "integer",
                             "mood": "text"}
    both = older.also(store.columns)
    assert {name: both.column_type(name) for name in both.readable} == {**store.columns, "place": "text"}
    store.close()


def test_what_nobody_would_find_again_is_not_taken(store: EventStore, tmp_path: Path) -> None:
    store.record([[shown_event("a", START)]])
    (tmp_path / FILE).unlink()
    with pytest.raises(sqlite3.OperationalError, match=r"events\.db was removed"):
        store.record([[shown_event("b", START)]])
    assert store.newest == 1


def test_where_one_column_is_both_times_an_event_was_when_it_is_known(tmp_path: Path, clock: SetClock) -> None:
    """As its landed event says: a told time would be the server's alone."""
    features = recorded_features()
    clicks = features.clicks.model_copy(update={"event_time": features.clicks.known_time})
    store = EventStore(tmp_path, features.model_copy(update={"clicks": clicks}), clock, margin=0)
    store.record([[shown_event("a", START - SECOND), click_event("a", START - SECOND // 2)]])
    assert known(store) == [("shown a", -SECOND, 0), ("click a", 1, 1)]
    store.close()


def test_a_repeated_event_changes_nothing_and_is_counted(store: EventStore) -> None:
    first, again = store.record([[shown_event("a", START)], [shown_event("a", START), shown_event("b", START)]])
    assert (first.new, first.repeats, again.new, again.repeats) == (1, 0, 1, 1)
    assert len(known(store)) == 2


@pytest.mark.parametrize("bytes_at_once", [1, event_store.AT_ONCE])
def test_what_is_new_is_told_batch_by_batch_into_however_many_statements_it_is_cut(
    store: EventStore, monkeypatch: pytest.MonkeyPatch, bytes_at_once: int
) -> None:
    monkeypatch.setattr(event_store, "AT_ONCE", bytes_at_once)
    odd = 'a"\\\u2028\U0001f600\'{}'
    store.record([[shown_event("a", START)]])
    batches = [[shown_event(odd, START), click_event(odd, START)], [], [shown_event("a", START)],
               [click_event("b", START)]]
    told = store.record(batches)
    assert [one.kinds for one in told] == [(Kind.IMPRESSION, Kind.CLICK), (), (), (Kind.CLICK,)]
    assert [one.repeats for one in told] == [0, 0, 1, 0]
    assert [one.known for one in told] == sorted(one.known for one in told)
    rows = store.connection.execute("SELECT id, columns FROM events WHERE seq > 1 ORDER BY seq").fetchall()
    new = [event for events in batches for event in events if event.id != "shown a"]
    assert rows == [(event.id, encoded(event.columns)) for event in new]


def test_an_impression_of_a_known_key_and_day_is_kept_and_counts_once(store: EventStore, clock: SetClock) -> None:
    store.record([[shown_event("a", START), shown_event("a", START + 1, name="other")]])
    store.record([[shown_event("a", START - 86_400 * SECOND, name="yesterday")]])
    clock.now += SECOND
    assert len(known(store)) == 3
    assert len(store.of_user("u", clock.now).items) == 2


def test_a_click_before_its_impression_is_joined_once_that_comes(store: EventStore, clock: SetClock) -> None:
    store.record([[click_event("a", START)]])
    store.record([[shown_event("a", START - SECOND)]])
    clock.now += SECOND
    assert store.of_user("u", clock.now).history(clock.now, 5) == ("i",)
    assert store.of_user("stranger", clock.now).items == ()


def test_events_join_over_a_reorder_of_the_key_as_if_there_had_been_none(tmp_path: Path, clock: SetClock) -> None:
    older = recorded_features()
    for turn, features in enumerate((older, reordered(older), older)):
        with closing(EventStore(tmp_path, features, clock, margin=1)) as store:
            assert (store.key, store.on) == (["request", "iid"], ["request", "iid"])
            store.record([[shown_event("a", START, name=f"shown in turn {turn}")]])
            store.record([[click_event(str(turn), START + SECOND), shown_event(str(turn + 1), START)]])
            clock.now += SECOND
            found = store.of_user("u", clock.now)
    assert len(found.items) == 4  # a, 1, 2 and 3
    assert len(found.history(clock.now, 9)) == 2  # 1 and 2, each clicked beside the configuration after its own


def test_a_store_of_before_takes_the_order_of_who_opens_it_first(tmp_path: Path, clock: SetClock) -> None:
    with closing(store_at(tmp_path, clock)) as store:
        store.connection.execute("DROP TABLE key_orders")
    for features in (reordered(recorded_features()), recorded_features()):
        with closing(EventStore(tmp_path, features, clock)) as store:
            assert (store.key, store.on) == (["iid", "request"], ["iid", "request"])


def test_other_columns_of_the_key_join_nothing_of_before_and_their_return_does(
    tmp_path: Path, clock: SetClock
) -> None:
    older = recorded_features()
    more = older.model_copy(update={"log": older.log.model_copy(update={"key": ("iid", "place", "request")})})
    found = []
    for turn, features in enumerate((older, more, reordered(older))):
        with closing(EventStore(tmp_path, features, clock, margin=1)) as store:
            store.record([[shown_event("a", START, name=str(turn))]])
            found.append(len(store.of_user("u", clock.now + SECOND).items))
    assert found == [1, 2, 2]


def test_of_several_clicks_the_one_known_first_counts_and_those_beyond_the_window_do_not(
    store: EventStore, clock: SetClock
) -> None:
    clock.now = START + 30 * SECOND
    store.record([[shown_event("a", START), click_event("a", START + 11 * SECOND, name="late"),
                   click_event("a", START + 9 * SECOND, name="first"), click_event("a", START, name="second")]])
    clock.now += SECOND
    found = store.of_user("u", clock.now)
    assert (found.clicked_at - START).tolist() == [9 * SECOND]


def test_of_one_link_so_many_clicks_are_kept_within_a_window_and_the_others_are_repeats(
    store: EventStore, clock: SetClock
) -> None:
    clock.now = START + 60 * SECOND
    clicks = [click_event("a", START + n % 2, name=str(n)) for n in range(MOST_CLICKS + 4)]
    assert store.record([[shown_event("a", START), *clicks]])[0][:2] == (MOST_CLICKS + 1, 4)
    beyond, other = click_event("a", START + 12 * SECOND, name="beyond"), click_event("b", START)
    assert store.record([[beyond, other, shown_event("a", START, name="again")]])[0][:2] == (3, 0)


def test_what_is_read_is_bounded_by_the_limits_and_sorted_by_nobody(store: EventStore) -> None:
    limits = {"user": "u", "window": 1, "moment": START, "told": True}
    steps = [step for *_, step in store.connection.execute(f"EXPLAIN QUERY PLAN {event_store.SHOWN}", limits)]
    searches = [step for step in steps if step.startswith("SEARCH events")]
    assert ["shown_to_user (user=?" in searches[0], "clicks (link=? AND at>? AND at<?" in searches[1]] == [True, True]
    assert not any("TEMP B-TREE" in step or step.startswith("SCAN events") for step in steps)


def test_the_indexes_of_an_older_folder_are_replaced(store: EventStore, tmp_path: Path, clock: SetClock) -> None:
    store.connection.execute("CREATE INDEX of_user ON events (user, at) WHERE identity IS NOT NULL")
    store.connection.execute("CREATE INDEX shown_of_item ON events (item) WHERE identity IS NOT NULL")
    names = store_at(tmp_path, clock).connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%INDEX%'")
    assert sorted(name for name, in names) == ["clicks", "shown_to_user"]


def test_nobody_knows_of_an_event_before_its_time(store: EventStore, clock: SetClock) -> None:
    store.record([[shown_event("a", START)]])
    assert store.of_user("u", clock.now).items == ()
    assert store.of_user("u", clock.now + 1).items == ("i",)


def test_another_process_sees_what_is_committed(store: EventStore, tmp_path: Path, clock: SetClock) -> None:
    other = EventStore(tmp_path, recorded_features(), clock)
    store.record([[shown_event("a", START)]])
    assert other.of_user("u", START + SECOND).items == ("i",)
    assert other.since == store.since == START
    assert other.record([[shown_event("a", START), replace(shown_event("b", START), item="j")]])[0][:2] == (1, 1)


def test_a_commit_that_took_longer_than_its_events_were_kept_back_is_told(tmp_path: Path) -> None:
    ticking = iter(range(START, START + 9 * SECOND, SECOND))
    told = list[bool]()
    store = EventStore(tmp_path / "slow", recorded_features(), lambda: next(ticking), 1, lambda: told.append(True))
    store.record([[shown_event("a", START)]])
    assert told == [True]


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path, clock: SetClock) -> None:
    (tmp_path / FILE).write_text("no data base at all, but a text of some length")
    with pytest.raises(DataError, match="cannot be opened"):
        store_at(tmp_path, clock)


def test_of_who_is_shown_without_end_the_latest_count(tmp_path: Path, clock: SetClock, monkeypatch) -> None:
    monkeypatch.setattr(event_store, "SHOWN", event_store.SHOWN.replace(str(event_store.MOST_SHOWN), "3"))
    store = store_at(tmp_path, clock)
    store.record([[shown_event(str(n), START + n) for n in range(5)]])
    clock.now += SECOND
    user = store.connection.execute("SELECT user FROM events").fetchone()[0]
    assert len(store.of_user(user, clock.now).items) == 3
