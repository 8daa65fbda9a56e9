"""Online rows are the features of an event exactly at the publish."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.errors import ConfigError, SchemaError
from contracts.summaries.features import OnlineTables
from pipelines.features.online_tables import stage_online
from pipelines.features.raw_features import build_features
from tests.pipelines.ingested_log import START, event, write_ingested
from tests.pipelines.queries import counted_queries, relations

COUNTER: dict[str, Any] = {"kind": "counter", "windows": ["1d", "30h"]}
USERS: list[dict[str, Any]] = [{"_user": "u0", "age": 30}, {"_user": "quiet", "age": 50}]
ITEMS: list[dict[str, Any]] = [
    {"_item": "i0", "brand": "x", "shop": "s"},
    {"_item": "unseen", "brand": "y", "shop": "t"},
]
LOG = [
    event(1, 1, "u0", "i0", clicked=2, city="a", _bid=3.0),
    event(2, 3, "u0", "i1", clicked=4, city=None, _bid=1.0),
    event(3, 5, "u1", "i0", city="b", _bid=2.0),
    event(4, 20, "u1", "i1", clicked=30, city="c", _bid=4.0),
    event(5, 23.5, "u0", "i0", city="d", _bid=5.0),
]


def config(publish_every: str) -> Config:
    return Config.model_validate(
        {
            "name": "t",
            "log": {"path": "log", "user_id": "uid", "item_id": "iid", "event_time": "time"},
            "label": {"clicks": {"path": "clicks", "on": ["uid"], "window": "1h"}},
            "users": {"path": "users", "key": "uid"},
            "items": {"path": "items", "key": "iid"},
            "features": {"publish_every": publish_every},
            "retrieve": {"filter_fields": ["shop", "brand"]},
            "fields": [
                {"name": "age", "kind": "numeric", "side": "user"},
                {"name": "city", "kind": "categorical", "side": "user"},
                {"name": "brand", "kind": "categorical", "side": "item"},
                {"name": "of_user", "side": "user", "by": ["uid"], **COUNTER},
                {"name": "of_city", "side": "user", "by": ["city", "age"], **COUNTER},
                {"name": "of_item", "side": "item", "by": ["iid"], **COUNTER},
                {"name": "recent", "kind": "sequence", "side": "user", "of": "brand", "length": 3},
            ],
        }
    )


def tables(spark: SparkSession, out: Artifacts) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    users, items = spark.read.parquet(str(out.online_users)), spark.read.parquet(str(out.online_items))
    return (
        {row["_user"]: row.asDict() for row in users.collect()},
        {row["_item"]: row.asDict() for row in items.collect()},
    )


def test_rows_hold_what_is_known_at_the_first_publish_after_the_log(spark: SparkSession, tmp_path: Path) -> None:
    out = write_ingested(Artifacts(tmp_path), LOG, USERS, ITEMS)
    summary = stage_online(spark, config("1d"), out).publish()
    assert summary == OnlineTables(published_at=(START + timedelta(days=1)).isoformat(), users=3, items=3)
    users, items = tables(spark, out)
    assert {u: (row["age"], row["city"], row["_recent_items"], row["recent"]) for u, row in users.items()} == {
        "u0": (30.0, "d", ["i1", "i0"], ["x"]),
        "u1": (None, "c", [], []),  # its click is not known yet
        "quiet": (50.0, None, [], []),
    }
    assert {i: (row["brand"], row["shop"], row["_bid"]) for i, row in items.items()} == {
        "i0": ("x", "s", 5.0),
        "i1": (None, None, 4.0),
        "unseen": ("y", "t", None),
    }
    at = {hours: (START + timedelta(hours=hours)).timestamp() * 1e6 for hours in (20, 23.5)}
    assert {i: row["_bid_at"] for i, row in items.items()} == {"i0": at[23.5], "i1": at[20], "unseen": None}
    # The last impression of i0 is shown but its label is still open.
    assert {i: (row["_shown"], row["_clicks"]) for i, row in items.items()} == {
        "i0": (2, 1),
        "i1": (2, 1),
        "unseen": (0, 0),
    }
    assert items["i0"]["of_item_count_30h"] == 3.0


def test_histories_carry_what_retrieval_reads_of_events(spark: SparkSession, tmp_path: Path) -> None:
    """Of u0's clicks, newest first: when they were, and the city of their impressions."""
    told = config("1d").model_dump(mode="json")
    told["retrieve"] |= {"events": ["time", "city"], "channels": {"sasrec": {}}}
    out = write_ingested(Artifacts(tmp_path), LOG, USERS, ITEMS)
    stage_online(spark, Config.model_validate(told), out).publish()
    users, _ = tables(spark, out)
    hours = [int((START + timedelta(hours=hour)).timestamp()) * 10**6 for hour in (3, 1)]
    assert {name: users["u0"][name] for name in ("_recent_items", "_recent_times", "_recent_value_city")} == {
        "_recent_items": ["i1", "i0"], "_recent_times": hours, "_recent_value_city": [None, "a"]}
    assert (users["quiet"]["_recent_times"], users["quiet"]["_recent_value_city"]) == ([], [])
    told["retrieve"]["events"] = ["_bid"]
    with pytest.raises(SchemaError, match=r"retrieve.events: column '_bid' is double"):
        stage_online(spark, Config.model_validate(told), out).publish()


def test_a_table_is_one_query_with_one_aggregate_for_each_key_that_is_counted_by(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Users by their id and by city and age, items by their id: attributes, counters and totals together."""
    out = write_ingested(Artifacts(tmp_path), LOG, USERS, ITEMS)
    with counted_queries(spark) as queries:
        stage_online(spark, config("1d"), out).publish()
    assert [len(relations(plan, "aggregate")) for plan in queries[-2:]] == [2, 1]
    assert len(queries) == 4  # the prior rate and the publish before them


@pytest.mark.parametrize("publish_every", ["6h", "0s"])
def test_a_row_equals_the_features_of_an_event_at_that_moment(
    spark: SparkSession, tmp_path: Path, publish_every: str
) -> None:
    """One more event per user at hour 30, which no table row may count."""
    at, probes = START + timedelta(hours=30), [("u0", "i0", "d"), ("u1", "i1", "c")]
    log = [*LOG, *(event(10 + n, 30, user, item, city=city) for n, (user, item, city) in enumerate(probes))]
    out = write_ingested(Artifacts(tmp_path), log, USERS, ITEMS)
    build_features(spark, config(publish_every), out)
    stage_online(spark, config(publish_every), out, at).publish()
    users, items = tables(spark, out)
    probed = {row["_row"]: row.asDict() for row in spark.read.parquet(str(out.features)).filter("_row >= 10").collect()}
    for n, (user, item, _) in enumerate(probes):
        of_user = {name: value for name, value in users[user].items() if not name.startswith("_")}
        of_item = {name: value for name, value in items[item].items() if not name.startswith("_") and name != "shop"}
        assert {"of_user_rate_30h", "of_city_count_1d", "recent"} <= of_user.keys()
        assert {name: probed[10 + n][name] for name in {**of_user, **of_item}} == {**of_user, **of_item}


def test_what_is_not_known_at_the_publish_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    log = [*LOG, event(6, 5, "late", "new", known=40, city="z", _bid=9.0), event(7, 50, "u0", "i0", city="y", _bid=9.0)]
    out = write_ingested(Artifacts(tmp_path), log, USERS, ITEMS)
    stage_online(spark, config("6h"), out, START + timedelta(days=1)).publish()
    users, items = tables(spark, out)
    assert users.keys() == {"u0", "u1", "quiet"}
    assert (users["u0"]["city"], items["i0"]["_bid"], items.keys()) == ("d", 5.0, {"i0", "i1", "unseen"})


def test_event_fresh_tables_are_of_the_moment_after_the_last_row_is_known(spark: SparkSession, tmp_path: Path) -> None:
    out = write_ingested(Artifacts(tmp_path), [*LOG, event(6, 5, "u1", "i0", known=40, city="z")], USERS, ITEMS)
    summary = stage_online(spark, config("0s"), out).publish()
    assert summary.published_at == (START + timedelta(hours=40, microseconds=1)).isoformat()
    assert tables(spark, out)[0]["u1"]["_recent_items"] == ["i1"]


@pytest.mark.parametrize(("log", "known"), [
    (LOG, timedelta(days=1)), (LOG[:3], timedelta(hours=4)), (LOG[2:3], timedelta(hours=5, microseconds=1))])
def test_a_table_says_until_when_it_knows_clicks(
    spark: SparkSession, tmp_path: Path, log: list[dict[str, Any]], known: timedelta
) -> None:
    """The next publish where the log goes beyond it; else its last click, or of a log without one its last row: who
    adds clicks that were told later leaves none out that came between the end of the log and the next publish."""
    out = write_ingested(Artifacts(tmp_path), log, USERS, ITEMS)
    stage_online(spark, config("1d"), out).publish()
    for table in (out.online_users, out.online_items):
        found = pq.read_table(table, columns=["_read_until", "_published_at"]).to_pylist()
        told = {(row["_read_until"], row["_published_at"]) for row in found}
        assert told == {(START + known, START + timedelta(days=1))}


def test_a_time_between_two_publishes_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    out = write_ingested(Artifacts(tmp_path), LOG, USERS, ITEMS)
    with pytest.raises(ConfigError, match=r"no publish time.*take 2026-01-06T06:00:00"):
        stage_online(spark, config("6h"), out, START + timedelta(hours=31)).publish()
