"""Counters and sequences against the definition, written down row by row in plain Python."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from contracts.artifacts import ROW
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from pipelines.features import sliced_counters
from pipelines.features.history_features import HistoryFeatures
from pipelines.features.ingested_tables import Impressions, Tables
from pipelines.features.source_columns import SourceColumns
from pipelines.windows.publish_clock import clocks, with_times

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
LOGS, PRIOR = 150, 0.2
SCHEMA = (
    "_row bigint, _user string, _item string, _time timestamp, _known timestamp, _label float, _label_time timestamp, "
    "_click_time timestamp, place string, kind bigint"
)


class Event(NamedTuple):
    row: int
    user: str | None
    item: str
    time: int
    known: int
    label: int
    label_time: int
    clicked: int
    place: str | None
    kind: int | None

    @property
    def enter(self) -> int:
        return max(self.time + 1, self.known)

    def closed_at(self, label_window: int) -> int:
        return max(self.enter, self.time + label_window * SECOND)

    @property
    def learned(self) -> int:
        return max(self.enter, self.label_time)


class Trial(NamedTuple):
    publish_every: int
    label_window: int
    windows: tuple[int, ...]
    length: int
    max_key_rows: int
    seed: int


TRIALS = st.builds(
    Trial,
    publish_every=st.sampled_from([0, 1, 7, 10]),
    label_window=st.sampled_from([0, 4, 15]),
    windows=st.lists(st.sampled_from([1, 3, 10, 25, 1000]), min_size=1, max_size=3, unique=True).map(tuple),
    length=st.integers(1, 4),
    max_key_rows=st.sampled_from([5, 10_000]),
    seed=st.integers(0, 10**9),
)


def random_log(number: int, random_: random.Random) -> list[Event]:
    """Few keys and whole seconds, give or take a microsecond, so that times often coincide."""
    events = []
    for index in range(random_.randint(10, 40)):
        time = random_.randint(1, 40) * SECOND + random_.choice([0, 0, 0, 1, -1])
        known = time + random_.choice([0, 0, 1, random_.randint(0, 20) * SECOND])
        label_time = max(known, time + random_.randint(0, 25) * SECOND)
        clicked = random_.choice([time, random_.randint(time, label_time)])
        user = random_.choice([f"{number}a", f"{number}b", None])
        place = random_.choice([f"{number}p", f"{number}q", None])
        kind = random_.choice([1, 2, 3, None])
        label = int(random_.random() < 0.5)
        item = f"{number}i{random_.randint(0, 1)}"
        events.append(Event(number * 1000 + index, user, item, time, known, label, label_time, clicked, place, kind))
    return events


def configuration(trial: Trial) -> Config:
    counter = {"kind": "counter", "windows": trial.windows}
    return Config.model_validate(
        {
            "name": "test",
            "log": {"path": "log", "user_id": "uid", "item_id": "iid", "event_time": "time"},
            "label": {"expression": "clicked"},
            "features": {
                "publish_every": trial.publish_every, "also_fresh": True, "max_key_rows": trial.max_key_rows,
            },
            "fields": [
                {"name": "kind", "kind": "categorical", "side": "item", "key_type": "int64"},
                {"name": "user", "side": "user", "by": ["uid"], **counter},
                {
                    "name": "again",
                    "side": "user",
                    "by": ["uid"],
                    "statistics": ["count"],
                    "prior_strength": 3,
                    **counter,
                },
                {"name": "pair", "side": "item", "by": ["iid", "place"], "prior_strength": 2, **counter},
                {"name": "recent", "kind": "sequence", "side": "user", "of": "kind", "length": trial.length},
            ],
        }
    )


def keys_of(name: str, e: Event) -> tuple[str | None, ...]:
    return (e.item, e.place) if name == "pair" else (e.user,)


def with_key_of(asker: Event, name: str, events: list[Event]) -> list[Event]:
    mine = keys_of(name, asker)
    return [] if None in mine else [e for e in events if keys_of(name, e) == mine]


def counter_by_definition(
    field: FieldConfig, statistic: str, window: int, now: int, events: list[Event], trial: Trial
) -> float:
    """`events` of the key."""
    same = [e for e in events if now - e.time < window * SECOND]
    if statistic == "count":
        return float(sum(e.enter <= now for e in same))
    closed = [e for e in same if e.closed_at(trial.label_window) <= now]
    clicks = sum(1 for e in closed if e.label and e.learned <= now)
    return (clicks + PRIOR * field.prior_strength) / (len(closed) + field.prior_strength)


def history_by_definition(asker: Event, now: int, events: list[Event], length: int) -> list[int]:
    clicks = [e for e in events if e.user == asker.user is not None and e.label and e.learned <= now and e.kind]
    ordered = sorted(clicks, key=lambda e: (e.clicked, e.learned, e.time, e.row), reverse=True)
    return [e.kind for e in ordered[:length] if e.kind is not None]


def expected(config: Config, events: list[Event], trial: Trial) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {e.row: {} for e in events}
    for e in events:
        of_key = {field.name: with_key_of(e, field.name, events) for field in config.fields}
        for suffix, step in (("", max(trial.publish_every * SECOND, 1)), ("@fresh", 1)):
            now = e.time // step * step
            for field in config.fields:
                for name, statistic, window in field.counters():
                    value = counter_by_definition(field, statistic, window, now, of_key[field.name], trial)
                    found[e.row][name + suffix] = value
            found[e.row]["recent" + suffix] = history_by_definition(e, now, events, trial.length)
    return found


@pytest.mark.slow
@settings(max_examples=3, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trial=TRIALS)
def test_histories_equal_the_definition(spark: SparkSession, trial: Trial) -> None:
    random_ = random.Random(trial.seed)
    logs = [random_log(number, random_) for number in range(LOGS)]
    config = configuration(trial)
    rows = [_as_row(e) for log in logs for e in log]
    frame = spark.createDataFrame(rows, SCHEMA)
    history = HistoryFeatures(config, SourceColumns(config, frame.schema, None, None), PRIOR, events=len(rows))
    impressions = with_times(frame, trial.label_window).persist()
    wide = impressions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sliced_counters, "SLICE_WIDTH", 7 * SECOND)
        for clock in clocks(config.features):
            wide = history.add(wide, Impressions(Tables(frame, None, None), impressions), clock)
    found = {row[ROW]: row.asDict() for row in wide.collect()}
    impressions.unpersist()
    assert len(found) == len(rows)
    for log in logs:
        for row, features in expected(config, log, trial).items():
            assert {name: found[row][name] for name, value in features.items()
                    if not _equal(found[row][name], value)} == {}, features


def _equal(one: Any, other: Any) -> bool:
    """Histories to the id, numbers to 1e-12; `pytest.approx` would take longer than the engine."""
    return abs(one - other) <= 1e-12 if isinstance(other, float) else bool(one == other)


def _as_row(e: Event) -> tuple[Any, ...]:
    times = (EPOCH + timedelta(microseconds=micros) for micros in (e.time, e.known, e.label_time, e.clicked))
    time, known, label_time, clicked = times
    return (e.row, e.user, e.item, time, known, float(e.label), label_time, clicked, e.place, e.kind)
