from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.errors import ConfigError, DataError, EmptyLogError, OneClassError, QuarantineError, SchemaError
from contracts.summaries.features import ClickRows, Ingested, TableRows
from pipelines.engine.content_hash import content_hash
from pipelines.ingest import quarantine
from pipelines.ingest.ingest import ingest

START = datetime(2026, 1, 5, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("impression", pa.string()),
        ("user_id", pa.string()),
        ("item_id", pa.int64()),
        ("request", pa.string()),
        ("event_time", pa.timestamp("us", "UTC")),
        ("known_time", pa.timestamp("us", "UTC")),
        ("position", pa.int32()),
        ("bid", pa.float64()),
        ("hour", pa.int32()),
        ("clicked", pa.int32()),
        ("unused", pa.string()),
    ]
)
LOG: dict[str, Any] = {
    "path": "{data}/log.parquet",
    "user_id": "user_id",
    "item_id": "item_id",
    "request_id": "request",
    "event_time": "event_time",
    "known_time": "known_time",
    "position": "position",
    "bid": "bid",
    "key": ["impression"],
    "max_bad_share": 1.0,
}
FIELDS = [
    {"name": "hour", "kind": "categorical", "side": "context", "key_type": "int64"},
    {"name": "item", "kind": "categorical", "side": "item", "column": "item_id"},
    {"name": "city", "kind": "categorical", "side": "user"},
]


def row(n: int, **changes: Any) -> dict[str, Any]:
    time = START + timedelta(hours=6 * n, minutes=n)
    plain = {
        "impression": f"i{n}",
        "user_id": f"u{n % 3}",
        "item_id": n % 4,
        "request": f"r{n}",
        "event_time": time,
        "known_time": time + timedelta(minutes=1),
        "position": 1 + n % 3,
        "bid": 0.5,
        "hour": time.hour,
        "clicked": int(n % 4 == 0),
        "unused": "x",
    }
    return plain | changes


def config(**changes: Any) -> Config:
    log = LOG | changes.pop("log", {})
    plain = {
        "name": "test",
        "log": {k: v for k, v in log.items() if v is not None},
        "label": {"expression": "clicked = 1"},
        "fields": FIELDS,
        "users": {"path": "{data}/users.parquet", "key": "user_id"},
    }
    return Config.model_validate({k: v for k, v in (plain | changes).items() if v is not None})


def write(data: Path, rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> Path:
    data.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), data / "log.parquet")
    users = [
        {"user_id": "u0", "city": "a"},
        {"user_id": "u1", "city": "b"},
        {"user_id": None, "city": "c"},
        {"user_id": "u1", "city": "d"},
    ]
    pq.write_table(pa.Table.from_pylist(users), data / "users.parquet")
    return data


BAD: dict[str, dict[str, Any]] = {
    "impression (key) is null": {"impression": None},
    "user_id is null": {"user_id": None},
    "user_id holds a NUL character": {"user_id": "a\0b"},
    "item_id is null": {"item_id": None},
    "request is null": {"request": None},
    "event_time is null": {"event_time": None},
    "known_time is null": {"known_time": None},
    "known_time is before event_time": {"known_time": START - timedelta(days=1)},
    "position is null or below 1": {"position": 0},
    "bid is null, negative or infinite": {"bid": -1.0},
    "the label is null": {"clicked": None},
}


@pytest.fixture(scope="module")
def mixed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ingested, Artifacts, Path]:
    """Twelve good rows, two copies known later, and one bad row for every reason."""
    data = tmp_path_factory.mktemp("mixed")
    rows = [row(n) for n in range(12)]
    rows += [row(3, known_time=START + timedelta(days=2), bid=9.0), row(5)]
    rows += [row(100 + n, **bad) for n, bad in enumerate(BAD.values())]
    write(data / "in", rows)
    out = Artifacts(data / "out")
    return ingest(spark, config(), data / "in", out), out, data


@pytest.mark.every_engine
def test_every_row_is_accounted_for(mixed: tuple[Ingested, Artifacts, Path]) -> None:
    summary, _, _ = mixed
    assert summary.rows_in == summary.events + summary.duplicates + summary.quarantined == 14 + len(BAD)
    assert (summary.events, summary.duplicates, summary.positives) == (12, 2, 3)
    assert sum(day.events for day in summary.days.values()) == 12


@pytest.mark.every_engine
def test_each_reason_fires_and_keeps_the_row(
    spark: SparkSession, mixed: tuple[Ingested, Artifacts, Path]
) -> None:
    summary, out, _ = mixed
    assert summary.reasons == dict.fromkeys(BAD, 1)
    kept = {r["reason"]: r for r in quarantine.read(spark, out.quarantine).where("table = 'log'").collect()}
    assert kept.keys() == BAD.keys()
    assert json.loads(kept["position is null or below 1"]["row"])["position"] == 0
    assert kept["event_time is null"]["day"] == "unknown"


def test_events_have_the_reserved_columns_and_what_fields_read(
    spark: SparkSession, mixed: tuple[Ingested, Artifacts, Path]
) -> None:
    _, out, _ = mixed
    events = spark.read.parquet(str(out.events))
    assert dict(events.dtypes) == {
        "_row": "bigint",
        "_label": "float",
        "_label_time": "timestamp",
        "_time": "timestamp",
        "_known": "timestamp",
        "_user": "string",
        "_item": "string",
        "_request": "string",
        "_position": "int",
        "_bid": "double",
        "hour": "int",
        "day": "string",
    }
    assert events.select("_row").distinct().count() == 12
    assert events.where("_known != _label_time").count() == 0
    assert events.where("day != date_format(_time, 'yyyy-MM-dd')").count() == 0


@pytest.mark.every_engine
def test_of_copies_the_one_known_first_stays(
    spark: SparkSession, mixed: tuple[Ingested, Artifacts, Path]
) -> None:
    _, out, _ = mixed
    assert spark.read.parquet(str(out.events)).where("_request = 'r3'").collect()[0]["_bid"] == 0.5


@pytest.mark.every_engine
def test_user_table_has_one_row_per_key(spark: SparkSession, mixed: tuple[Ingested, Artifacts, Path]) -> None:
    summary, out, _ = mixed
    assert summary.users == TableRows(rows_in=4, rows=2, duplicates=1, quarantined=1)
    users = spark.read.parquet(str(out.users))
    assert users.columns == ["_user", "city"]
    assert {r["_user"] for r in users.collect()} == {"u0", "u1"}
    assert quarantine.read(spark, out.quarantine).where("table = 'users'").count() == 1


@pytest.mark.every_engine
def test_one_day_again_gives_the_same_rows_and_leaves_every_file_as_it_was(
    spark: SparkSession, mixed: tuple[Ingested, Artifacts, Path]
) -> None:
    whole, out, data = mixed
    before, files = content_hash(spark.read.parquet(str(out.events))), _files(out.events)
    summary = ingest(spark, config(), data / "in", out, day="2026-01-06")
    assert content_hash(spark.read.parquet(str(out.events))) == before
    assert summary.days == {"2026-01-06": whole.days["2026-01-06"]}
    assert _files(out.events) == files
    assert summary.undated == 1


@pytest.mark.every_engine
def test_a_whole_run_drops_days_that_left_the_log(spark: SparkSession, tmp_path: Path) -> None:
    out = Artifacts(tmp_path / "out")
    ingest(spark, config(), write(tmp_path, [row(n) for n in range(12)]), out)
    ingest(spark, config(), write(tmp_path, [row(n) for n in range(6)]), out)
    assert [p.name for p in sorted(out.events.glob("day=*"))] == ["day=2026-01-05", "day=2026-01-06"]


def _files(folder: Path) -> dict[str, int]:
    return {p.relative_to(folder).as_posix(): p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


@pytest.mark.every_engine
def test_too_many_bad_rows_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    data, out = (
        write(tmp_path, [row(n) for n in range(8)] + [row(8, bid=-1.0), row(9, bid=-2.0)]),
        Artifacts(tmp_path / "out"),
    )
    with pytest.raises(
        QuarantineError, match=r"2 of 10 rows \(20.00%\).*allows 10.00%.*bid is null, negative.*quarantine"
    ):
        ingest(spark, config(log={"max_bad_share": 0.1}), data, out)
    assert quarantine.read(spark, out.quarantine).where("table = 'log'").count() == 2
    assert not out.events.exists()


def test_an_empty_log_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(EmptyLogError, match="no rows"):
        ingest(spark, config(), write(tmp_path, []), Artifacts(tmp_path / "out"))


def test_a_log_of_bad_rows_alone_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(EmptyLogError, match="all 2 rows are malformed"):
        ingest(spark, config(), write(tmp_path, [row(n, bid=-1.0) for n in range(2)]), Artifacts(tmp_path / "out"))


def test_a_day_without_rows_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(EmptyLogError, match="2020-01-01"):
        ingest(
            spark, config(), write(tmp_path, [row(n) for n in range(8)]), Artifacts(tmp_path / "out"), day="2020-01-01"
        )


@pytest.mark.every_engine
@pytest.mark.parametrize("clicked", [0, 1])
def test_one_class_is_refused_and_leaves_no_events(spark: SparkSession, tmp_path: Path, clicked: int) -> None:
    out = Artifacts(tmp_path / "out")
    with pytest.raises(OneClassError, match=f"all 8 events have label {clicked}"):
        ingest(spark, config(), write(tmp_path, [row(n, clicked=clicked) for n in range(8)]), out)
    assert not out.events.exists()
    assert not list(out.events.parent.glob(".events*"))


@pytest.mark.every_engine
@pytest.mark.parametrize("wrong", ["log", "users"])
def test_a_refused_run_leaves_events_and_tables_of_the_last_good_one(
    spark: SparkSession, tmp_path: Path, wrong: str
) -> None:
    rows = [row(n) for n in range(12)]
    data, out = write(tmp_path / "data", rows), Artifacts(tmp_path / "out")
    ingest(spark, config(log={"max_bad_share": 0.3}), data, out)
    before = {file: file.read_bytes() for file in sorted(out.events.parent.rglob("*.parquet"))}
    assert {file.relative_to(out.events.parent).parts[0] for file in before} >= {"events", "users"}
    changed = [{"user_id": None if wrong == "users" else f"u{n}", "city": "z"} for n in range(3)]
    pq.write_table(pa.Table.from_pylist(changed, pa.schema({"user_id": pa.string(), "city": pa.string()})),
                   data / "users.parquet")
    more = [row(12, clicked=1), *([row(20 + n, bid=-1.0) for n in range(12)] if wrong == "log" else [])]
    pq.write_table(pa.Table.from_pylist([*rows, *more], SCHEMA), data / "log.parquet")
    with pytest.raises(QuarantineError, match=f"{wrong}: "):
        ingest(spark, config(log={"max_bad_share": 0.3}), data, out)
    kept = {file: file.read_bytes() for file in sorted(out.events.parent.rglob("*.parquet"))
            if "quarantine" not in file.parts}
    assert kept == {file: content for file, content in before.items() if "quarantine" not in file.parts}


def test_a_single_user_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(OneClassError, match="single user 'u0'"):
        ingest(spark, config(), write(tmp_path, [row(n, user_id="u0") for n in range(8)]), Artifacts(tmp_path / "out"))


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"log": {"user_id": "userid"}}, SchemaError, "'userid' is missing.*did you mean 'user_id'"),
    ({"log": {"event_time": "unused"}}, SchemaError, "'unused' holds no timestamp of the years 1000 to 9998"),
    ({"log": {"event_time": "hour"}}, SchemaError, "'hour' is int, expected a timestamp"),
    ({"log": {"bid": "unused"}}, SchemaError, "'unused' is string, expected a number"),
    ({"log": {"position": "bid"}}, SchemaError, "'bid' is double, expected a whole number"),
    ({"log": {"user_id": "bid"}}, SchemaError, "'bid' is double, a key is text"),
    ({"log": {"key": ["impresion"]}}, SchemaError, "did you mean 'impression'"),
    ({"log": {"derive": {"x": "hours + 1"}}}, SchemaError, r"log.derive.x.*`hours`"),
    ({"log": {"derive": {"x": "cast(unused as int)"}, "position": "x"}}, DataError, "fails on a value.*try_cast"),
    ({"log": {"event_time": None}}, ConfigError, "known_time is set without log.event_time"),
    ({"label": {"expression": "clickd = 1"}}, SchemaError, r"label.expression.*`clickd`"),
    ({"label": {"expression": "unused"}}, SchemaError, "is string, expected a boolean or a number"),
    (
        {"fields": [{"name": "hours", "kind": "categorical", "side": "context"}]},
        SchemaError,
        "field 'hours'.*did you mean 'hour'",
    ),
    (
        {"fields": [{"name": "day", "kind": "categorical", "side": "context"}], "log": {"derive": {"day": "hour"}}},
        SchemaError,
        "reserved",
    ),
    ({"log": {"path": "{data}/nowhere"}}, DataError, "nothing to read at .*nowhere"),
    ({"log": {"format": "nosuch"}}, DataError, "knows no such format"),
]


@pytest.mark.parametrize(("changes", "error", "message"), WRONG, ids=[m for _, _, m in WRONG])
def test_wrong_settings_are_named(
    spark: SparkSession, tmp_path: Path, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    data = write(tmp_path, [row(n) for n in range(8)])
    with pytest.raises(error, match=message):
        ingest(spark, config(**changes), data, Artifacts(tmp_path / "out"))


@pytest.mark.every_engine
def test_a_text_log_is_accounted_for_too(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"u{n % 2},{n % 3},2026-01-0{5 + n % 2} 00:00:0{n},{n % 2}" for n in range(8)]
    lines += ["u1,1,never,0", "u1,x,2026-01-05 00:00:00,0", "u1,1", lines[0]]
    years = [f"u1,1,{year}-01-05 00:00:00,0" for year in ("12026", "+12026", "10000", "-2026", "999999")]
    lines += [*years, "u1,1,02026-01-06 00:00:09,0"]  # the last is of 2026
    text = "\n".join(["user_id,item_id,event_time,clicked", *lines]) + "\n"
    (tmp_path / "log.csv").write_text(text, encoding="utf-8")
    log = (
        {
            "path": "{data}/log.csv",
            "format": "csv",
            "options": {"header": "true"},
            "schema_ddl": "user_id STRING, item_id INT, event_time TIMESTAMP, clicked INT",
        }
        | dict.fromkeys(("known_time", "position", "bid", "request_id"), None)
        | {"key": ["user_id", "event_time"]}
    )
    out = Artifacts(tmp_path / "out")
    summary = ingest(spark, config(log=log, users=None, fields=FIELDS[1:2]), tmp_path, out)
    assert (summary.rows_in, summary.events, summary.duplicates) == (18, 9, 1)
    assert summary.reasons == {quarantine.MALFORMED: 4, "event_time is no timestamp of the years 1000 to 9998": 4}
    kept = quarantine.read(spark, out.quarantine).where(f"reason = '{quarantine.MALFORMED}'").collect()
    assert {row["row"] for row in kept} == {*lines[8:11], years[-1]}


def test_a_log_of_times_that_no_event_has_is_refused_with_the_cure(spark: SparkSession, tmp_path: Path) -> None:
    """Milliseconds that are taken for seconds."""
    data = write(tmp_path, [row(n) for n in range(8)])
    log = {"derive": {"late": "timestamp_micros(unix_micros(event_time) * 1000)"}, "event_time": "late"}
    with pytest.raises(SchemaError, match=r"'late' holds no timestamp of the years 1000 to 9998.*timestamp_millis"):
        ingest(spark, config(log={**log, "known_time": None}), data, Artifacts(tmp_path / "out"))


def test_a_row_that_is_never_known_is_an_event(spark: SparkSession, tmp_path: Path) -> None:
    never = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    data = write(tmp_path, [row(n, known_time=never if n % 2 else row(n)["event_time"]) for n in range(12)])
    assert ingest(spark, config(), data, Artifacts(tmp_path / "out")).events == 12


def test_a_malformed_day_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'6 January' is no day"):
        ingest(spark, config(), tmp_path, Artifacts(tmp_path / "out"), day="6 January")


def test_a_plain_table_needs_no_roles(spark: SparkSession, tmp_path: Path) -> None:
    roles = dict.fromkeys(("user_id", "item_id", "request_id", "event_time", "known_time", "position", "bid"), None)
    out = Artifacts(tmp_path / "out")
    rows = [row(n) for n in range(8)] + [row(0)]
    plain = config(log=roles | {"key": []}, fields=FIELDS[:1], users=None)
    summary = ingest(spark, plain, write(tmp_path, rows), out)
    assert (summary.events, summary.duplicates) == (9, 0)
    assert spark.read.parquet(str(out.events)).columns == ["_row", "_label", "hour", "day"]
    assert [p.name for p in out.events.glob("day=*")] == ["day=all"]


@pytest.mark.every_engine
def test_clicks_are_joined_counted_and_aged(spark: SparkSession, tmp_path: Path) -> None:
    data, out = write(tmp_path, [row(n) for n in range(12)]), Artifacts(tmp_path / "out")
    time = [row(n)["event_time"] for n in range(12)]
    clicks = [
        {"impression": "i0", "at": time[0], "seen": time[0] + timedelta(days=9)},
        {"impression": "i1", "at": time[1] + timedelta(hours=1), "seen": time[1] + timedelta(hours=2)},
        {"impression": "i1", "at": time[1] + timedelta(hours=1), "seen": time[1] + timedelta(hours=3)},
        {"impression": "i2", "at": time[2] + timedelta(hours=1, microseconds=1), "seen": time[2] + timedelta(days=1)},
        {"impression": "i3", "at": time[3] - timedelta(microseconds=1), "seen": time[3]},
        {"impression": "lost", "at": time[3], "seen": time[3]},
        {"impression": None, "at": time[3], "seen": time[3]},
        {"impression": "i4", "at": time[4], "seen": time[4] - timedelta(seconds=1)},
    ]
    pq.write_table(pa.Table.from_pylist(clicks), data / "clicks.parquet")
    label = {
        "clicks": {
            "path": "{data}/clicks.parquet",
            "on": ["impression"],
            "event_time": "at",
            "known_time": "seen",
            "window": "1h",
        }
    }
    summary = ingest(spark, config(label=label), data, out)
    assert summary.clicks == ClickRows(
        rows_in=8, quarantined=2, duplicates=1, unknown_impression=1,
        reasons={"impression is null": 1, "seen is before at": 1},
    )
    found = {
        r["_request"]: r
        for r in spark.sql(
            f"select _request, _label, unix_micros(_label_time) - unix_micros(_time) as age from parquet.`{out.events}`"
        ).collect()
    }
    assert [n for n in range(12) if found[f"r{n}"]["_label"] == 1.0] == [0, 1]
    hour = 3_600_000_000
    assert [found[f"r{n}"]["age"] for n in range(3)] == [9 * 24 * hour, 2 * hour, hour]
    again = ingest(spark, config(label=label), data, Artifacts(tmp_path / "day"), day="2026-01-05")
    assert again.days["2026-01-05"] == summary.days["2026-01-05"]


def test_clicks_need_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    data = write(tmp_path, [row(n) for n in range(8)])
    pq.write_table(pa.table({"impression": ["i1"], "at": [START]}), data / "clicks.parquet")
    label = {"clicks": {"path": "{data}/clicks.parquet", "on": ["impression"]}}
    with pytest.raises(SchemaError, match=r"label\.clicks\.event_time: column 'event_time' is missing"):
        ingest(spark, config(label=label), data, Artifacts(tmp_path / "out"))


@settings(max_examples=3, deadline=None)
@given(bad=st.lists(st.sampled_from(sorted(BAD)), max_size=6), copies=st.lists(st.integers(0, 7), max_size=6))
def test_any_mixture_of_rows_adds_up(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, bad: list[str], copies: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("mixture")
    rows = (
        [row(n) for n in range(8)]
        + [row(n) for n in copies]
        + [row(100 + n, **BAD[reason]) for n, reason in enumerate(bad)]
    )
    summary = ingest(spark, config(users=None, fields=FIELDS[:2]), write(folder, rows), Artifacts(folder / "out"))
    assert (summary.events, summary.duplicates, summary.quarantined) == (8, len(copies), len(bad))
    assert summary.reasons == {reason: bad.count(reason) for reason in sorted(set(bad))}
