from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from contracts.config.log import Log
from contracts.errors import SchemaError
from pipelines.ingest import quarantine
from pipelines.ingest.roles import add_roles, instant, rules
from pipelines.reading.text_files import CORRUPT

SECOND = 10**6
INSIDE = {-30_610_224_000 * SECOND: "1000-01-01", 0: "1970-01-01", 253_370_764_800 * SECOND - 1: "9998-12-31"}
OUTSIDE = {  # microseconds since 1970, by what they are
    "milliseconds taken for seconds": 1_700_000_000_000 * SECOND, "year 10000": 253_402_300_800 * SECOND,
    "year 9999": 253_370_764_800 * SECOND, "year 999": -30_610_224_000 * SECOND - 1, "largest": 2**63 - 1,
}


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


@pytest.mark.parametrize("as_text", [False, True])
def test_times_that_cannot_be_computed_with_are_quarantined_with_their_column_and_the_limit(
    spark: SparkSession, tmp_path: Path, as_text: bool
) -> None:
    rows = pa.table({"u": [*INSIDE.values(), *OUTSIDE],
                     "t": pa.array([*INSIDE, *OUTSIDE.values()], pa.timestamp("us", "UTC"))})
    frame = spark.createDataFrame(rows).withColumn(CORRUPT, F.lit(None).cast("string"))
    frame = frame.withColumn("t", F.col("t").cast("string")) if as_text else frame
    log = Log(path="p", user_id="u", event_time="t")
    marked = quarantine.mark(add_roles(frame, log), rules(add_roles(frame, log), log))
    counts = quarantine.count(marked)
    assert counts.by_reason == {"t is no timestamp of the years 1000 to 9998": len(OUTSIDE)}
    assert counts.rows - counts.bad == len(INSIDE)
    assert {(row["day"], row["_user"]) for row in quarantine.clean(marked).collect()} == {
        (day, day) for day in INSIDE.values()}
    quarantine.write(marked, counts, ["u", "t"], tmp_path, "log", F.col("day"))
    kept = quarantine.read(spark, tmp_path).collect()
    assert {row["day"] for row in kept} == {"unknown"}
    assert {json.loads(row["row"])["u"] for row in kept} == set(OUTSIDE)
