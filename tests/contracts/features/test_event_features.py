from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from contracts.config.config import Config
from contracts.errors import BundleError, ConfigError
from contracts.features.event_features import (
    FILE,
    NOTHING_TOLD,
    EventFeatures,
    SharedFolderError,
    TimedKeyError,
    ToldEvents,
)

LOG: dict[str, Any] = {"path": "log", "user_id": "uid", "item_id": "iid", "event_time": "time", "known_time": "known",
                       "key": ["rid"], "derive": {"hour": "hour(time)"}}
CLICKS: dict[str, Any] = {"path": "clicks", "on": ["rid"], "event_time": "time", "known_time": "known", "window": 60}
COUNTER = {"kind": "counter", "windows": [120, 600]}


def config(log: dict[str, Any] | None = None, clicks: dict[str, Any] | None = None, every: int = 0) -> Config:
    return Config.model_validate({
        "name": "events", "log": {**LOG, **(log or {})}, "label": {"clicks": {**CLICKS, **(clicks or {})}},
        "features": {"publish_every": every}, "users": {"path": "users", "key": "user"},
        "fields": [
            {"name": "visits", "side": "user", "by": ["user"], **COUNTER},
            {"name": "views", "side": "item", "by": ["iid"], **COUNTER},
            {"name": "by_kind", "side": "item", "by": ["kind"], **COUNTER},
            {"name": "both", "side": "item", "by": ["iid", "kind"], **COUNTER},
        ],
    })


def test_counters_of_the_key_of_their_side_can_be_event_fresh() -> None:
    found = EventFeatures.of(config(), 0.1, None, {})
    assert [field.name for field in found.counters] == ["visits", "views"]
    assert [field.name for field in found.of_side("user")] == ["visits"]
    assert (found.longest, found.label_window, found.fresh) == (600, 60, True)
    assert found.groups == ()
    assert not EventFeatures.of(config(every=86_400), 0.1, None, {}).fresh


def test_so_can_those_of_items_by_columns_of_their_table() -> None:
    found = EventFeatures.of(config(), 0.1, None, {}, ["kind", "price"])
    assert [field.name for field in found.counters] == ["visits", "views"]
    assert [field.name for field in found.groups] == ["by_kind"]
    long = found.groups[0].model_copy(update={"windows": (9000,)})
    assert found.model_copy(update={"groups": (long,)}).longest == 9000


def test_columns_are_those_that_fields_and_keys_read() -> None:
    found = EventFeatures.of(config(), 0.1, None, {"age": "integer", "hour": "integer"})
    assert found.readable == ["age", "rid"]
    assert [found.column_type(name) for name in ("age", "rid", "hour", "other")] == ["integer", "text", None, None]


def test_a_derived_column_is_told_unless_the_time_of_the_event_tells_it() -> None:
    derive = {"hour": "hour(time)", "band": "floor(age / 10)", "rid": "concat(a, b)"}
    found = EventFeatures.of(config({"derive": derive}), 0.1, None, {"band": "integer", "hour": "integer"})
    assert [(name, found.column_type(name)) for name in found.readable] == [("band", "integer"), ("rid", "text")]


@pytest.mark.parametrize(("log", "clicks", "message"), [
    ({"known_time": None}, {}, r"log\.known_time is not set"), ({"key": []}, {}, r"log\.key is not set"),
    ({"user_id": None}, {}, r"log\.user_id is not set"),
    ({}, {"known_time": None}, r"^label\.clicks\.known_time is not set"),
    ({"key": ["rid", "iid"]}, {}, r"label\.clicks\.on lacks 'iid' of log\.key"),
])
def test_a_log_that_does_not_say_enough_is_refused(log: dict[str, Any], clicks: dict[str, Any], message: str) -> None:
    made = config(clicks=clicks).model_copy()
    made = made.model_copy(update={"log": made.log.model_copy(update=log)})
    with pytest.raises(ConfigError, match=message):
        EventFeatures.of(made, 0.1, None, {})


@pytest.mark.parametrize(("key", "on", "message"), [
    (["rid", "hour"], ["rid", "hour"], r"'hour' of label\.clicks\.on and log\.key is a time .*from 'time': .*; name"),
    (["rid"], ["rid", "hour"], r"'hour' of label\.clicks\.on is a time of the event"),
    (["rid", "time"], ["time", "rid"], r"'time' of label\.clicks\.on and log\.key"),
    (["rid"], ["rid", "clicked"], r"'clicked' of label\.clicks\.on is"),
])
def test_a_key_that_tells_the_time_is_refused(key: list[str], on: list[str], message: str) -> None:
    """No event could tell it: a column that tells its time again is refused at the door."""
    with pytest.raises(TimedKeyError, match=message):
        EventFeatures.of(config({"key": key}, {"on": on, "event_time": "clicked"}), 0.1, None, {})


@pytest.mark.parametrize(("log", "clicks", "named"), [
    ("{data}/shown", "{data}/conversions", "label.clicks.path '{data}/conversions' and the conversions"),
    ("{data}/conversions", "{data}/clicks", "log.path '{data}/conversions' and the conversions"),
    ("s3a://b/impressions/v2", "s3a://b/clicks/v2", "log.path 's3a://b/impressions/v2' and label.clicks.path"),
    ("{data}/v2", "/mnt/clicks/v2", "log.path '{data}/v2' and label.clicks.path '/mnt/clicks/v2'"),
])
def test_kinds_of_events_that_would_be_landed_in_one_folder_are_refused(log: str, clicks: str, named: str) -> None:
    with pytest.raises(SharedFolderError, match=re.escape(named)):
        EventFeatures.of(config({"path": log}, {"path": clicks}), 0.1, None, {})


def test_a_log_without_clicks_is_refused() -> None:
    made = Config.model_validate({"name": "events", "log": LOG, "label": {"expression": "clicked"}, "fields": [
        {"name": "item", "kind": "categorical", "side": "item", "column": "iid"}]})
    with pytest.raises(ConfigError, match=r"label\.clicks is not set"):
        EventFeatures.of(made, 0.1, None, {})


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert EventFeatures.read(tmp_path) is None
    found = EventFeatures.of(config(), 0.1, None, {"age": "integer"})
    found.write(tmp_path)
    assert EventFeatures.read(tmp_path) == found
    (tmp_path / FILE).write_text('{"log": 3}')
    with pytest.raises(BundleError, match="assemble the bundle again"):
        EventFeatures.read(tmp_path)


def test_what_histories_are_told_is_that_of_retrieval() -> None:
    assert not EventFeatures.of(config(), 0.1, None, {}).reads_events
    made = config().model_dump(mode="json")
    made["retrieve"] |= {"events": ["time", "kind"], "channels": {"sasrec": {}}}
    found = EventFeatures.of(Config.model_validate(made), 0.1, None, {"kind": "text"})
    assert (found.reads_events, found.event_columns) == (True, ("kind",))


def test_the_first_items_keep_what_is_told_of_them() -> None:
    told = ToldEvents([9, 7, 5], {"kind": ["order", None, "click"]})
    assert told.first(2) == ToldEvents([9, 7], {"kind": ["order", None]})
    assert told.first(9) == told
    assert not any(NOTHING_TOLD.first(3))


def test_of_other_bundles_columns_those_are_taken_whose_names_no_reader_takes_for_its_own() -> None:
    found = EventFeatures.of(config(), 0.1, None, {"kind": "text"}).also({"Kind": "number", "mood": "number"})
    assert found.columns == {"kind": "text", "mood": "number"}
