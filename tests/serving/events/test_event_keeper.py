from __future__ import annotations

import time
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from contracts.errors import DataError
from serving.embedded_store.database import transaction
from serving.events import event_keeper
from serving.events.event_keeper import KEPT_SECONDS, EventKeeper, let_go
from serving.events.event_store import FILE
from serving.events.landing import alone, land
from tests.serving.recorded_events import SECOND, START, SetClock, recorded_features, shown_event, store_at

FEATURES = recorded_features()
REACH = (FEATURES.longest + FEATURES.label_window + KEPT_SECONDS) * SECOND


def test_what_is_landed_and_was_recorded_before_any_window_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_keeper, "ROWS_AT_ONCE", 2)
    clock, log = SetClock(), tmp_path / "log"
    store = store_at(tmp_path, clock)
    store.record([[shown_event(f"old {number}", START) for number in range(5)]])
    clock.now += SECOND
    store.record([[shown_event("young", None)]])
    later = clock.now + REACH
    assert let_go(store, FEATURES, log, later) == 0  # nothing is landed yet
    land(store, FEATURES, log)
    assert let_go(store, FEATURES, log, later) == 5
    assert (store.since, store.forgotten) == (later - REACH, 5)
    assert store.record([[shown_event("new", None)]])[0].new == 1
    assert let_go(store, FEATURES, log, later + SECOND) == 1  # the new one is not landed


def test_an_event_of_long_ago_is_known_as_long_as_others_recorded_with_it(tmp_path: Path) -> None:
    clock, log = SetClock(), tmp_path / "log"
    store = store_at(tmp_path, clock)
    late = shown_event("late", START - REACH - SECOND)
    store.record([[late]])
    land(store, FEATURES, log)
    assert let_go(store, FEATURES, log, clock()) == 0
    assert store.record([[late]])[0].repeats == 1
    assert let_go(store, FEATURES, log, clock() + REACH + SECOND) == 1


def test_who_looks_for_what_may_go_waits_for_no_writer_and_keeps_none_waiting(tmp_path: Path) -> None:
    clock, log = SetClock(), tmp_path / "log"
    store, other = store_at(tmp_path, clock), store_at(tmp_path, clock)
    store.record([[shown_event("a", START)]])
    land(store, FEATURES, log)
    store.connection.execute("PRAGMA busy_timeout = 0")
    with transaction(other.connection):
        assert let_go(store, FEATURES, log, clock()) == 0


def test_one_process_forgets_at_a_time(tmp_path: Path) -> None:
    clock, log = SetClock(), tmp_path / "log"
    store = store_at(tmp_path, clock)
    store.record([[shown_event("a", START)]])
    land(store, FEATURES, log)
    later = clock() + REACH + SECOND
    with alone(log):
        assert let_go(store, FEATURES, log, later) == 0
    assert let_go(store, FEATURES, log, later) == 1


def test_what_is_left_is_landed_at_the_end(tmp_path: Path) -> None:
    clock = SetClock()
    store = store_at(tmp_path, clock)
    keeper = EventKeeper(lambda: store_at(tmp_path, clock), FEATURES, tmp_path / "log", clock, seconds=600)
    store.record([[shown_event("a", START)]])
    keeper.close()
    assert ds.dataset(tmp_path / "log" / "shown", format="parquet").count_rows() == 1


def test_it_lands_while_it_runs_and_outlives_a_folder_that_refuses(tmp_path: Path) -> None:
    clock = SetClock()
    store = store_at(tmp_path, clock)
    store.record([[shown_event("a", START)]])
    (tmp_path / "log").write_text("in the way")
    keeper = EventKeeper(lambda: store_at(tmp_path, clock), FEATURES, tmp_path / "log", clock, seconds=0.01)
    time.sleep(0.05)
    (tmp_path / "log").unlink()
    end = time.monotonic() + 60
    while not list((tmp_path / "log").glob("shown/[0-9]*.parquet")) and time.monotonic() < end:
        time.sleep(0.01)
    keeper.close()
    assert ds.dataset(tmp_path / "log" / "shown", format="parquet", exclude_invalid_files=True).count_rows() == 1


def test_a_store_that_cannot_be_opened_is_told_at_the_start_and_not_by_a_thread_that_ends(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("this is no data base " * 100)
    with pytest.raises(DataError, match="cannot be opened"):
        EventKeeper(lambda: store_at(tmp_path, SetClock()), FEATURES, tmp_path / "log", SetClock())
