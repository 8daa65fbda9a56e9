"""The two engines give one answer to every listed expression.

Apache Spark's answers are kept in apache_spark.json (types and digests of values), so that the quick test starts the
embedded engine alone; the slow one asks Apache Spark again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.sql.calls import calls
from pipelines.sql.checked import checked
from pipelines.sql.functions import EQUAL
from pipelines.sql.own_functions import AGGREGATES, OF_ROWS
from pipelines.sql.syntax import SYNTAX
from tests.pipelines.sql.engine_answers import RECORD, answers, cases, own_cases, users_cases
from tests.pipelines.sql.sql_sample import sample

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", EQUAL)
def test_each_function_is_called_by_each_of_its_cases(name: str) -> None:
    assert EQUAL[name]
    assert all(name in {call.name for call in calls(text)} for text in EQUAL[name])


def test_what_the_cases_call_is_listed() -> None:
    called = {call.name for text in cases() for call in calls(text)}
    assert called <= EQUAL.keys() | SYNTAX.keys() | AGGREGATES.keys() | OF_ROWS.keys()


def test_apache_sparks_answers_are_those_of_these_cases() -> None:
    assert list(json.loads(RECORD.read_text(encoding="utf-8"))) == cases()


@pytest.fixture(scope="module")
def embedded() -> Iterator[Any]:
    """A session of its own, beside whatever the process has: its server needs no Java and is there at once."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql.connect.session import SparkSession

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").create()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.ansi.enabled", "true")
    yield session
    session.stop()
    server.stop()


def test_the_embedded_engine_answers_as_apache_spark_did(embedded: Any, tmp_path: Path) -> None:
    pq.write_table(sample(), tmp_path / "sample.parquet")
    types = dict(embedded.read.parquet(str(tmp_path / "sample.parquet")).dtypes)
    asked = [checked(text, "embedded", types=types).expression for text in users_cases()] + own_cases()
    found = dict(zip(cases(), answers(embedded, tmp_path / "sample.parquet", asked), strict=True))
    kept = json.loads(RECORD.read_text(encoding="utf-8"))
    assert {text: found[text] for text in kept if found[text] != kept[text]} == {}


def test_another_answer_is_found(embedded: Any, tmp_path: Path) -> None:
    pq.write_table(sample(), tmp_path / "sample.parquet")
    kept = json.loads(RECORD.read_text(encoding="utf-8"))
    assert answers(embedded, tmp_path / "sample.parquet", ["hour(tz)"]) != [kept["hour(ts)"]]


@pytest.mark.slow
def test_apache_spark_answers_as_it_did(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.pipelines.sql.engine_answers", str(tmp_path / "now.json")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert json.loads((tmp_path / "now.json").read_text("utf-8")) == json.loads(RECORD.read_text("utf-8"))
