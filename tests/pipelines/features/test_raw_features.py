"""From ingested files to features/: types, days, and that nothing is known before its time."""

from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.errors import EmptyLogError, SchemaError
from pipelines.engine.session import is_local
from pipelines.features import raw_features
from pipelines.features.raw_features import build_features
from tests.pipelines.ingested_log import HOUR, START, event, write_ingested

COUNTER: dict[str, Any] = {"kind": "counter", "windows": ["1d", "30h"]}
FIELDS: list[dict[str, Any]] = [
    {"name": "age", "kind": "numeric", "side": "user"},
    {"name": "uid", "kind": "categorical", "side": "user"},
    {"name": "brand", "kind": "categorical", "side": "item", "key_type": "int64"},
    {"name": "tags", "kind": "multi_valued", "side": "item"},
    {"name": "place", "kind": "categorical", "side": "context"},
    {"name": "of_user", "side": "user", "by": ["uid"], **COUNTER},
    {"name": "of_age", "side": "user", "by": ["age"], "statistics": ["count"], **COUNTER},
    {"name": "of_brand", "side": "item", "by": ["brand"], **COUNTER},
    {"name": "recent", "kind": "sequence", "side": "user", "of": "brand", "length": 3},
]
USERS: list[dict[str, Any]] = [{"_user": "u0", "age": 30}, {"_user": "u1", "age": None}]
ITEMS: list[dict[str, Any]] = [{"_item": f"i{n}", "brand": n % 2, "tags": ["a", str(n)]} for n in range(3)]
LOGS = 12
DAYS = ["2026-01-05", "2026-01-06", "2026-01-07"]


def config(fields: list[dict[str, Any]] = FIELDS, **features: Any) -> Config:
    return Config.model_validate(
        {
            "name": "t",
            "log": {"path": "log", "user_id": "uid", "item_id": "iid", "event_time": "time"},
            "label": {"clicks": {"path": "clicks", "on": ["uid"], "window": "2h"}},
            "users": {"path": "users", "key": "uid"},
            "items": {"path": "items", "key": "iid"},
            "features": {"publish_every": "6h", "also_fresh": True} | features,
            "fields": fields,
        }
    )


def random_events(seed: int = 1, rows: int = 120) -> list[dict[str, Any]]:
    """Three days; user u2 is in no table; a third of the clicks is learned after the label window."""
    random_ = random.Random(seed)
    events = []
    for row in range(rows):
        hours = random_.randint(0, 71 * 4) / 4
        known = hours + random_.choice([0, 0, 0.5, 9])
        clicked = known + random_.choice([0.1, 1, 7]) if random_.random() < 0.4 else None
        user, item = f"u{random_.randint(0, 2)}", f"i{random_.randint(0, 3)}"
        events.append(event(row, hours, user, item, known=known, clicked=clicked, place=random_.choice(["x", None])))
    return events


def features(spark: SparkSession, out: Artifacts) -> dict[int, dict[str, Any]]:
    return {row["_row"]: row.asDict() for row in spark.read.parquet(str(out.features)).collect()}


@pytest.fixture(scope="module")
def built(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Artifacts, dict[int, dict[str, Any]]]:
    out = write_ingested(Artifacts(tmp_path_factory.mktemp("log")), random_events(), USERS, ITEMS)
    summary = build_features(spark, config(), out)
    assert summary.rows == 120
    assert list(summary.rows_of_day) == DAYS
    return out, features(spark, out)


def test_columns_and_types(spark: SparkSession, built: tuple[Artifacts, dict[int, dict[str, Any]]]) -> None:
    schema = spark.read.parquet(str(built[0].features)).schema
    types = {field.name: field.dataType.simpleString() for field in schema}
    counters = [f"{name}_{s}_{w}" for name in ("of_user", "of_brand") for w in ("1d", "30h") for s in ("count", "rate")]
    counters += ["of_age_count_1d", "of_age_count_30h"]
    assert {name: types[name] for name in types if not name.startswith("_") and name != "day"} == {
        "age": "double",
        "uid": "string",
        "brand": "bigint",
        "tags": "array<string>",
        "place": "string",
        **{name + suffix: "double" for name in counters for suffix in ("", "@fresh")},
        "recent": "array<bigint>",
        "recent@fresh": "array<bigint>",
    }
    roles = {"_row", "_user", "_item", "_time", "_known", "_label", "_label_time", "_bid"}
    assert {name for name in types if name.startswith("_")} == roles


@pytest.mark.every_engine
def test_tables_are_joined_and_unknown_keys_are_missing(built: tuple[Artifacts, dict[int, dict[str, Any]]]) -> None:
    ages, brands = {"u0": 30.0, "u1": None, "u2": None}, {"i0": 0, "i1": 1, "i2": 0, "i3": None}
    for row in built[1].values():
        assert (row["age"], row["brand"], row["uid"]) == (ages[row["_user"]], brands[row["_item"]], row["_user"])
        assert row["tags"] == (None if row["_item"] == "i3" else ["a", row["_item"][1]])
        if row["age"] is None:
            assert row["of_age_count_1d"] == row["of_age_count_1d@fresh"] == 0.0


@pytest.mark.every_engine
def test_columns_of_tables_are_the_same_whoever_brings_them(
    spark: SparkSession, built: tuple[Artifacts, dict[int, dict[str, Any]]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tables of more rows than a Python worker holds are joined by the engine."""
    looking = Mock(wraps=raw_features.tables_of_fields)
    monkeypatch.setattr(raw_features, "tables_of_fields", looking)
    for number, (most, by_workers) in enumerate([(raw_features.LOOKED_UP, is_local(spark)), (0, False)]):
        monkeypatch.setattr(raw_features, "LOOKED_UP", most)
        out = write_ingested(Artifacts(tmp_path / str(number)), random_events(), USERS, ITEMS)
        build_features(spark, config(), out)
        assert looking.called == by_workers
        assert features(spark, out) == built[1]
        looking.reset_mock()
    kinds = [spark.read.parquet(str(place.features)).dtypes for place in (out, built[0])]
    assert kinds[0] == kinds[1]


def test_a_missing_key_has_the_prior_rate(built: tuple[Artifacts, dict[int, dict[str, Any]]]) -> None:
    first = min(built[1].values(), key=lambda row: row["_time"])
    missing = [row for row in built[1].values() if row["brand"] is None]
    assert {row["of_brand_rate_1d"] for row in missing} == {first["of_user_rate_1d"]}


def test_one_day_again_is_the_same_and_touches_no_file(
    spark: SparkSession, built: tuple[Artifacts, dict[int, dict[str, Any]]]
) -> None:
    out, before = built
    stamps = {path: path.stat().st_mtime_ns for path in out.features.rglob("*.parquet")}
    summary = build_features(spark, config(), out, [DAYS[1]])
    assert list(summary.rows_of_day) == [DAYS[1]]
    assert features(spark, out) == before
    assert {path: path.stat().st_mtime_ns for path in out.features.rglob("*.parquet")} == stamps


@pytest.mark.slow
def test_a_log_in_passes_of_some_days_is_what_it_is_in_one(
    spark: SparkSession, built: tuple[Artifacts, dict[int, dict[str, Any]]], tmp_path: Path
) -> None:
    out = write_ingested(Artifacts(tmp_path), random_events(), USERS, ITEMS)
    (out.features / "day=2026-01-01").mkdir(parents=True)  # of a log before this one
    summary = build_features(spark, config(), out, rows_at_once=60)
    assert features(spark, out) == built[1]
    assert (list(summary.written), list(summary.rows_of_day)) == (DAYS, DAYS)
    assert sorted(path.name for path in out.features.glob("day=*")) == [f"day={day}" for day in DAYS]


def test_what_a_killed_run_has_kept_for_its_passes_goes(spark: SparkSession, tmp_path: Path) -> None:
    out = write_ingested(Artifacts(tmp_path), random_events(rows=3), USERS, ITEMS)
    kept = [tmp_path / ".features.counts", tmp_path / ".features.clicks"]
    for folder in kept:
        (folder / ".moves").mkdir(parents=True)
    build_features(spark, config(fields=FIELDS[:2]), out)
    assert not any(folder.exists() for folder in kept)


def test_counters_of_one_day_need_no_older_events_than_their_windows(spark: SparkSession, tmp_path: Path) -> None:
    fields = [field for field in FIELDS if field["kind"] != "sequence"]
    out = write_ingested(Artifacts(tmp_path), [*random_events(), event(500, 24 * 5)], USERS, ITEMS)
    build_features(spark, config(fields), out)
    before = features(spark, out)
    build_features(spark, config(fields), out, [DAYS[2]])
    assert features(spark, out) == before


def late_rows(random_: random.Random, arrival: float) -> list[dict[str, Any]]:
    """Shown at any time, known at the arrival or after it."""
    rows = []
    for row in range(500, 520):
        hours = random_.randint(0, 70 * 4) / 4
        known = max(hours, arrival + random_.choice([0, 0.5, 9]))
        clicked = known + random_.choice([0.1, 1]) if random_.random() < 0.5 else None
        user, item = f"u{random_.randint(0, 2)}", f"i{random_.randint(0, 3)}"
        rows.append(event(row, hours, user, item, known=known, clicked=clicked, place="x"))
    return rows


def relabelled(random_: random.Random, row: dict[str, Any], arrival: datetime) -> dict[str, Any]:
    """What is learned about a label at the arrival or after it: another click, or none after all."""
    if row["_label_time"] < arrival and (row["_label"] or random_.random() < 0.7):
        return row
    learned = max(row["_label_time"], arrival + random_.choice([0, 1, 7]) * HOUR)
    return {**row, "_label": 1 - row["_label"], "_label_time": learned}


def of_log(log: int, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Users, items and row numbers of its own, so that many logs share one run and none of their histories."""
    return [
        {**row, "_row": log * 1000 + row["_row"], "_user": f"{log}/{row['_user']}", "_item": f"{log}/{row['_item']}"}
        for row in rows
    ]


def without_log(row: dict[str, Any]) -> dict[str, Any]:
    """The features, with the keys of `of_log` taken off again."""
    plain = {name: value for name, value in row.items() if not name.startswith("_") and name not in ("uid", "age")}
    plain["brand"] = row["brand"] and row["brand"] % 10
    return plain | {name: [brand % 10 for brand in row[name]] for name in ("recent", "recent@fresh")}


def test_late_data_changes_no_earlier_feature(spark: SparkSession, tmp_path: Path) -> None:
    """Random logs, each twice: as it is, and with rows and labels that arrive from a random time on."""
    logs: list[dict[str, Any]] = []
    arrivals = [random.Random(100 + seed).randint(20 * 4, 60 * 4) / 4 for seed in range(LOGS)]
    for seed, hours in enumerate(arrivals):
        random_, plain = random.Random(seed), random_events(seed, 80)
        changed = [relabelled(random_, row, START + hours * HOUR) for row in plain]
        logs += of_log(2 * seed, plain) + of_log(2 * seed + 1, [*changed, *late_rows(random_, hours)])
    users = [{"_user": f"{log}/u0", "age": log} for log in range(2 * LOGS)]
    items = [{**item, "_item": f"{log}/{item['_item']}", "brand": log * 10 + item["brand"]}
             for item in ITEMS for log in range(2 * LOGS)]
    out = write_ingested(Artifacts(tmp_path), logs, users, items)
    build_features(spark, config(), out)
    found = features(spark, out)
    early = late = 0
    for seed, hours in enumerate(arrivals):
        for row, shown in enumerate(random_events(seed, 80)):
            before, after = found[2000 * seed + row], found[2000 * seed + 1000 + row]
            if shown["_time"] < START + hours * HOUR:
                assert without_log(after) == without_log(before), (seed, row)
                early += 1
            else:
                late += without_log(after) != without_log(before)
    assert early > 40 * LOGS / 2
    assert late > 10 * LOGS


def test_a_day_without_events_is_refused(
    spark: SparkSession, built: tuple[Artifacts, dict[int, dict[str, Any]]]
) -> None:
    with pytest.raises(EmptyLogError, match="2026-02-01"):
        build_features(spark, config(), built[0], ["2026-02-01"])


def test_a_field_without_column_is_refused(
    spark: SparkSession, built: tuple[Artifacts, dict[int, dict[str, Any]]]
) -> None:
    with pytest.raises(SchemaError, match=r"'where'.*'plase'.*'place'"):
        build_features(
            spark, config([{"name": "where", "kind": "categorical", "side": "context", "column": "plase"}]), built[0]
        )


def test_a_plain_table_has_static_features_only(spark: SparkSession, tmp_path: Path) -> None:
    out = Artifacts(tmp_path)
    frame = spark.createDataFrame([(1, 1.0, "x"), (2, 0.0, None)], "_row bigint, _label float, place string")
    frame.selectExpr("*", "'all' AS day").write.partitionBy("day").parquet(str(out.events))
    plain = {"name": "t", "log": {"path": "log"}, "label": {"expression": "y"}}
    place = {"name": "place", "kind": "categorical", "side": "context"}
    assert build_features(spark, Config.model_validate({**plain, "fields": [place]}), out).rows_of_day == {"all": 2}
    assert {row: found["place"] for row, found in features(spark, out).items()} == {1: "x", 2: None}
