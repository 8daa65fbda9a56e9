from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from contracts.config.log import Log
from contracts.errors import SchemaError
from pipelines.ingest.roles import add_roles, instant


def test_only_configured_roles_have_columns(spark: SparkSession) -> None:
    frame = spark.sql("select 7 as u, '2026-01-05T23:30:00-02:00' as t, 2L as p, 1 as b")
    roles = add_roles(frame, Log(path="p", user_id="u", event_time="t", position="p", bid="b"))
    assert dict(roles.dtypes) == dict(frame.dtypes) | {
        "_user": "string",
        "_time": "timestamp",
        "_known": "timestamp",
        "_position": "int",
        "_bid": "double",
        "day": "string",
    }
    row = roles.selectExpr("_user", "_time = _known", "unix_seconds(_time)", "day").collect()[0]
    assert tuple(row) == ("7", True, int(datetime(2026, 1, 6, 1, 30, tzinfo=UTC).timestamp()), "2026-01-06")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("'2026-01-05 01:00:00'", 1),
        ("timestamp_ntz'2026-01-05 01:00:00'", 1),
        ("date'2026-01-05'", 0),
        ("'soon'", None),
    ],
)
def test_times_are_read_as_utc(spark: SparkSession, value: str, expected: int | None) -> None:
    frame = spark.sql(f"select {value} as t")
    found = (
        frame.select(instant(frame, "t", "here").alias("t")).selectExpr("unix_seconds(t) - 1767571200").collect()[0][0]
    )
    assert found == (None if expected is None else expected * 3600)


def test_numbers_are_no_times(spark: SparkSession) -> None:
    with pytest.raises(
        SchemaError, match=r"here: column 'id' is bigint, expected a timestamp; derive one: timestamp_seconds\(id\)"
    ):
        instant(spark.range(1), "id", "here")
