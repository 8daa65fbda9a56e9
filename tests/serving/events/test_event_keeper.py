from __future__ import annotations

import time
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from contracts.errors import DataError
from serving.events.event_keeper import KEPT_SECONDS, EventKeeper, let_go
from serving.events.event_store import FILE
from serving.events.landing import land
from tests.serving.recorded_events import SECOND, START, SetClock, recorded_features, shown_event, store_at

FEATURES = recorded_features()
REACH = (FEATURES.longest + FEATURES.label_window + KEPT_SECONDS) * SECOND


def test_what_is_landed_and_out_of_reach_is_forgotten(tmp_path: Path) -> None:
    clock = SetClock()
    store = store_at(tmp_path, clock)
    store.record([[shown_event("old", START), shown_event("young", None)]])
    store.record([[shown_event("older", START - SECOND)]])
    later = START + REACH + 1
    assert let_go(store, FEATURES, later) == 0  # nothing is landed yet
    land(store, FEATURES, tmp_path / "log")
    assert let_go(store, FEATURES, later) == 2
    assert store.since == later - REACH
    assert store.record([[shown_event("new", None)]])[0].new == 1


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
