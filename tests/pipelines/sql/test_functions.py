"""The two engines give one answer to every listed expression.

Apache Spark's answers are kept in apache_spark.json (types and digests of values), so that the quick test starts the
embedded engine alone; tests/pipelines/test_laws_on_spark.py asks Apache Spark again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipelines.engine.embedded import is_embedded
from pipelines.sql.calls import calls
from pipelines.sql.checked import Engine, checked
from pipelines.sql.functions import EQUAL
from pipelines.sql.own_functions import AGGREGATES, OF_ROWS
from pipelines.sql.syntax import SYNTAX
from tests.pipelines.sql.engine_answers import RECORD, answers, cases, own_cases, users_cases
from tests.pipelines.sql.sql_sample import sample


@pytest.mark.parametrize("name", EQUAL)
def test_each_function_is_called_by_each_of_its_cases(name: str) -> None:
    assert EQUAL[name]
    assert all(name in {call.name for call in calls(text)} for text in EQUAL[name])


def test_what_the_cases_call_is_listed() -> None:
    called = {call.name for text in cases() for call in calls(text)}
    assert called <= EQUAL.keys() | SYNTAX.keys() | AGGREGATES.keys() | OF_ROWS.keys()


def test_apache_sparks_answers_are_those_of_these_cases() -> None:
    assert list(json.loads(RECORD.read_text(encoding="utf-8"))) == cases()


@pytest.mark.every_engine
def test_the_engine_answers_as_apache_spark_did(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(sample(), tmp_path / "sample.parquet")
    types = dict(spark.read.parquet(str(tmp_path / "sample.parquet")).dtypes)
    engine: Engine = "embedded" if is_embedded(spark) else "spark"
    asked = [checked(text, engine, types=types).expression for text in users_cases()] + own_cases()
    found = dict(zip(cases(), answers(spark, tmp_path / "sample.parquet", asked), strict=True))
    kept = json.loads(RECORD.read_text(encoding="utf-8"))
    assert {text: found[text] for text in kept if found[text] != kept[text]} == {}


def test_another_answer_is_found(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(sample(), tmp_path / "sample.parquet")
    kept = json.loads(RECORD.read_text(encoding="utf-8"))
    assert answers(spark, tmp_path / "sample.parquet", ["hour(tz)"]) != [kept["hour(ts)"]]
