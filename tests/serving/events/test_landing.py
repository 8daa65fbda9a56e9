from __future__ import annotations

import fcntl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from serving.embedded_store.database import transaction
from serving.events.event import Event, Kind
from serving.events.event_store import EventStore
from serving.events.landing import LANDED, LANDING, TYPES, folder_of, land
from serving.request.query import ContextValue
from tests.serving.recorded_events import SECOND, START, SetClock, click_event, recorded_features, shown_event, store_at

FEATURES = recorded_features()


@pytest.fixture
def store(tmp_path: Path) -> EventStore:
    store = store_at(tmp_path, SetClock())
    bought = Event(id="bought", kind=Kind.CONVERSION, at=START, user="u", item="i", columns={})
    store.record([[shown_event("a", START - SECOND), shown_event("b", START), click_event("a", START), bought]])
    return store


def rows(folder: Path) -> list[dict[str, Any]]:
    return ds.dataset(folder, format="parquet", exclude_invalid_files=True).to_table().to_pylist()


def test_events_are_landed_as_the_configuration_reads_them(store: EventStore, tmp_path: Path) -> None:
    assert land(store, FEATURES, tmp_path / "log") == 4
    shown = rows(tmp_path / "log" / "shown")
    assert [(row["event_id"], row["request"], row["slot"], row["place"], row["age"]) for row in shown] == [
        ("shown a", "a", 1, "top", None), ("shown b", "b", 1, "top", None)]
    assert [sorted(row) for row in rows(tmp_path / "log" / "clicked")] == [["event_id", "iid", "known", "request",
                                                                          "time", "uid"]]
    assert [row["event_id"] for row in rows(tmp_path / "log" / "conversions")] == ["bought"]
    schema = pq.read_schema(next((tmp_path / "log" / "shown").glob("*.parquet")))
    assert (schema.field("time").type, schema.field("price").type) == (pa.timestamp("us", "UTC"), TYPES["number"])


def test_every_event_is_landed_once_whatever_the_size_of_a_file(store: EventStore, tmp_path: Path) -> None:
    assert land(store, FEATURES, tmp_path / "log", rows=3) == 4
    assert land(store, FEATURES, tmp_path / "log") == 0
    store.record([[shown_event("c", START)]])
    assert land(store, FEATURES, tmp_path / "log") == 1
    found = [row["event_id"] for row in rows(tmp_path / "log" / "shown")]
    assert sorted(found) == ["shown a", "shown b", "shown c"]


def test_who_comes_soon_after_another_process_of_the_host_leaves_the_rest_for_later(
    store: EventStore, tmp_path: Path
) -> None:
    """So that a host has as many files with many workers as with one; a clock that was put back keeps nobody."""
    log, other = tmp_path / "log", store_at(tmp_path, SetClock())
    assert land(store, FEATURES, log, now=START, pause=27) == 4
    store.record([[shown_event("c", START)]])
    assert land(other, FEATURES, log, now=START + 26 * SECOND, pause=27) == 0
    assert land(other, FEATURES, log, now=START + 27 * SECOND, pause=27) == 1
    store.record([[shown_event("d", START)]])
    assert land(store, FEATURES, log, now=START, pause=27) == 1
    store.record([[shown_event("e", START)]])
    assert land(store, FEATURES, log, now=START + 1) == 1


def test_events_of_another_file_write_over_nothing_that_is_landed(store: EventStore, tmp_path: Path) -> None:
    """One that begins anew, and an older copy that was put back: both give numbers that files have already."""
    log = tmp_path / "log"
    land(store, FEATURES, log)
    for name in ("anew", "put back"):
        other = store_at(tmp_path / name, SetClock())
        other.record([[shown_event(f"{name} {number}", START) for number in range(4)]])
        assert land(other, FEATURES, log) == 4
        with transaction(other.connection):
            other.set_fact(LANDED, 0)  # killed before it said so
        assert land(other, FEATURES, log) == 4
        other.record([[shown_event(f"{name} later", START)]])
        assert land(other, FEATURES, log) == 1
    found = sorted(row["event_id"] for row in rows(log / "shown"))
    others = [f"shown {name} {number}" for name in ("anew", "put back") for number in (0, 1, 2, 3, "later")]
    assert found == sorted(["shown a", "shown b", *others])


def test_a_turn_is_bounded_in_bytes_and_lands_one_event_at_least(store: EventStore, tmp_path: Path) -> None:
    of_two = store.connection.execute("SELECT sum(length(columns)) FROM events WHERE seq <= 2").fetchone()[0]
    assert land(store, FEATURES, tmp_path / "log", size=of_two) == 4
    assert sorted(path.stem.lstrip("0") for path in (tmp_path / "log" / "shown").iterdir()) == [f"1-{2:020}"]
    store.record([[shown_event("c", START), shown_event("d", START)]])
    assert land(store, FEATURES, tmp_path / "log", size=1) == 2
    assert len(list((tmp_path / "log" / "shown").iterdir())) == 3
    assert len(rows(tmp_path / "log" / "shown")) == 4


def test_who_was_killed_before_it_could_say_so_lands_the_same_files_again(store: EventStore, tmp_path: Path) -> None:
    land(store, FEATURES, tmp_path / "log")
    with transaction(store.connection):
        store.set_fact(LANDED, 0)
    assert store.fact(LANDING) == 4
    store.record([[shown_event("c", START)]])
    assert land(store, FEATURES, tmp_path / "log") == 5
    assert len(rows(tmp_path / "log" / "shown")) == 3


def test_one_process_lands_at_a_time(store: EventStore, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with (tmp_path / "log" / ".landing").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert land(store, FEATURES, tmp_path / "log") == 0
    assert land(store, FEATURES, tmp_path / "log") == 4


def test_what_a_bundle_of_other_types_has_recorded_is_landed_as_this_one_reads_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is none of a column's type is missing, and holds nothing up."""
    store = store_at(tmp_path, SetClock())
    told: dict[str, tuple[ContextValue, ...]] = {"place": ("top", 7, 2.5, True), "age": (3, "old", 4.0, 4.5)}
    names = ("a", "b", "c", "d")
    events = [shown_event(name, START) for name in names]
    changed = [{name: values[place] for name, values in told.items()} for place in range(len(events))]
    store.record([[replace(event, columns={**event.columns, **other})
                   for event, other in zip(events, changed, strict=True)]])
    assert land(store, FEATURES, tmp_path / "log") == 4
    found = {row["event_id"][-1]: (row["place"], row["age"]) for row in rows(tmp_path / "log" / "shown")}
    assert found == {"a": ("top", 3), "b": ("7", None), "c": ("2.5", 4), "d": ("true", None)}
    assert "2 of 4 events were recorded with another type of column 'age'" in caplog.text


@pytest.mark.parametrize(("column", "told", "landed"), [
    ("age", ["4", "-12", "+7", "007", " 4", "4.0", "1_000", "four", "", 2 * "9999999999"],
     [4, -12, 7, 7, None, None, None, None, None, None]),
    ("price", ["1.5", "4", "-.5", "2e3", "1e999", "nan", "0x1", ""], [1.5, 4.0, -0.5, 2000.0, None, None, None, None]),
    ("new", ["true", "False", "1", "yes", ""], [True, False, None, None, None]),
])
def test_a_text_that_spells_a_value_of_the_columns_type_is_landed_as_that(
    tmp_path: Path, column: str, told: list[str], landed: list[float | None], caplog: pytest.LogCaptureFixture
) -> None:
    """Else a column of log.key that a bundle before took for text would cost each of its rows the key."""
    store = store_at(tmp_path, SetClock())
    events = [shown_event(str(number), START) for number in range(len(told))]
    store.record([[replace(event, columns={**event.columns, column: value})
                   for event, value in zip(events, told, strict=True)]])
    land(store, FEATURES, tmp_path / "log")
    assert [row[column] for row in rows(tmp_path / "log" / "shown")] == landed
    assert f"{landed.count(None)} of {len(told)} events were recorded with another type" in caplog.text


def test_user_and_item_are_landed_by_the_names_that_this_bundle_has_for_them(
    store: EventStore, tmp_path: Path
) -> None:
    anonymous = Event(id="click of nobody", kind=Kind.CLICK, at=START, user="", item="i",
                      columns={"iid": "i", "request": "a"})
    store.record([[anonymous]])
    names = {"user_id": "visitor", "item_id": "product", "key": ("request", "product")}
    renamed = FEATURES.model_copy(update={
        "log": FEATURES.log.model_copy(update=names),
        "clicks": FEATURES.clicks.model_copy(update={"on": ("request", "product")})})
    land(store, renamed, tmp_path / "log")
    shown = [(row["event_id"], row["visitor"], row["product"]) for row in rows(tmp_path / "log" / "shown")]
    assert shown == [("shown a", "u", "i"), ("shown b", "u", "i")]
    clicked = [(row["event_id"], row["visitor"], row["product"]) for row in rows(tmp_path / "log" / "clicked")]
    assert clicked == [("click a", "u", "i"), ("click of nobody", None, "i")]
    assert [(row["visitor"], row["product"]) for row in rows(tmp_path / "log" / "conversions")] == [("u", "i")]


def test_folders_are_called_as_the_paths_of_their_tables() -> None:
    features = FEATURES.model_copy(update={"log": FEATURES.log.model_copy(update={"path": "/mnt/logs/seen"})})
    assert [folder_of(kind, features) for kind in Kind] == ["seen", "clicked", "conversions"]


@pytest.mark.parametrize("own", [False, True])
def test_a_request_is_landed_under_the_name_that_it_has_now(store: EventStore, tmp_path: Path, own: bool) -> None:
    """Not where the log has a column of its own by the name of before."""
    on = ("call", "iid")
    renamed = FEATURES.model_copy(update={
        "log": FEATURES.log.model_copy(update={"request_id": "call", "key": on}),
        "clicks": FEATURES.clicks.model_copy(update={"on": on}),
        "columns": {**FEATURES.columns, "request": "text"} if own else FEATURES.columns})
    told = shown_event("c", START)
    columns = {name: value for name, value in told.columns.items() if name != "request"}
    later = EventStore(store.path.parent, renamed, SetClock())
    later.record([[replace(told, columns={**columns, "call": "c"})]])
    land(later, renamed, tmp_path / "log")
    a, b = (None, None) if own else ("a", "b")
    assert [row["call"] for row in rows(tmp_path / "log" / "shown")] == [a, b, "c"]
    assert [row["call"] for row in rows(tmp_path / "log" / "clicked")] == [a]
