from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.errors import QuarantineError
from pipelines.ingest import quarantine

pytestmark = pytest.mark.every_engine
RULES = {"x is null": "x is null", "x is odd": "x % 2 = 1", "x is small": "x < 4"}


def marked(spark: SparkSession) -> DataFrame:
    rows = [(None, None), (1, None), (2, None), (4, None), (6, "broken")]
    frame = spark.createDataFrame(rows, "x int, _corrupt string")
    return quarantine.mark(frame, [(reason, F.expr(condition)) for reason, condition in RULES.items()])


def test_the_first_rule_that_applies_names_the_reason(spark: SparkSession) -> None:
    found = {row["x"]: row["_reason"] for row in marked(spark).collect()}
    assert found == {None: "x is null", 1: "x is odd", 2: "x is small", 4: None, 6: quarantine.MALFORMED}
    counts = quarantine.count(marked(spark))
    assert (counts.rows, counts.bad, set(counts.by_reason.values())) == (5, 4, {1})
    assert quarantine.clean(marked(spark)).collect() == [(4,)]


def test_rows_are_kept_as_text(spark: SparkSession, tmp_path: Path) -> None:
    assert quarantine.read(spark, tmp_path).count() == 0
    frame = marked(spark)
    quarantine.write(frame, quarantine.count(frame), ["x"], tmp_path, "log")
    found = {(r["reason"], r["row"], r["table"], r["day"]) for r in quarantine.read(spark, tmp_path).collect()}
    assert found == {
        ("x is null", '{"x":null}', "log", "all"),
        ("x is odd", '{"x":1}', "log", "all"),
        ("x is small", '{"x":2}', "log", "all"),
        (quarantine.MALFORMED, "broken", "log", "all"),
    }


def test_floating_point_is_written_alike_on_every_engine(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(value, [1, 2], None) for value in (1e12, 1e-7, 0.1, float("nan"), -0.0, None)]
    frame = spark.createDataFrame(rows, "x double, y array<int>, _corrupt string")
    bad = quarantine.mark(frame, [("bad", F.lit(True))])
    quarantine.write(bad, quarantine.count(bad), ["y", "x"], tmp_path, "log")
    texts = {row["row"] for row in quarantine.read(spark, tmp_path).collect()}
    numbers = ("1000000000000.0", "1e-07", "0.1", "nan", "-0.0", "null")
    assert texts == {f'{{"y":[1,2],"x":{number}}}' for number in numbers}


def test_the_limit_itself_is_allowed(tmp_path: Path) -> None:
    quarantine.check_share({"a": 1, "b": 1}, 100, 0.02, "log", tmp_path)
    quarantine.check_share({}, 0, 0.0, "log", tmp_path)
    with pytest.raises(
        QuarantineError, match=r"log: 3 of 100 rows \(3.00%\).*allows 2.00%; most often: b \(2\)\. See .*table=log"
    ):
        quarantine.check_share({"a": 1, "b": 2}, 100, 0.02, "log", tmp_path)
