"""The embedded engine and Apache Spark make the same tables of every example and of random logs, or both refuse; a
standalone cluster of two workers makes them of two examples, in `make cluster-test` of all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.summaries import summary
from contracts.summaries.features import FeaturesSummary
from sluice.engines.comparison import lines, tables_of
from sluice.engines.records import EngineComparison
from tests.pipelines.spark_processes import cluster
from tests.sluice.engine_cases import (
    CLUSTERED,
    DAILY,
    EVERY,
    LATE,
    LATE_DAY,
    cases,
    config_of,
    run_cases,
    write_cases,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("engines")
    write_cases(made)
    run_cases(made, "embedded")
    _on_spark(str(made), "local[2]")
    return made


@pytest.fixture(scope="module")
def clustered(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Examples' output of a standalone cluster of two workers, too."""
    with cluster(tmp_path_factory.mktemp("workers"), "1g") as master:
        _on_spark(str(folder), master, "cluster")
    return folder


def _on_spark(*arguments: str) -> None:
    command = [sys.executable, "-m", "tests.sluice.engine_cases", *arguments]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr[max(0, done.stderr.find("Traceback")):][:3000]


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_both_engines_make_the_same_tables(folder: Path, name: str) -> None:
    case = folder / name
    assert case in list(cases(folder))
    engines = Artifacts(case / "embedded"), Artifacts(case / "spark")
    tables = tuple(tables_of(config_of(case), *engines))
    found = EngineComparison(rows=0, spark_master="local[2]", tables=tables)
    assert all(table.equal for table in tables), "\n".join(lines(found))
    one, other = (summary.read(out.features, FeaturesSummary) for out in engines)
    assert one is not None
    assert other is not None
    assert one.model_copy(update={"seconds": {}}) == other.model_copy(update={"seconds": {}})


@pytest.mark.slow
@pytest.mark.parametrize("name", CLUSTERED)
def test_a_cluster_of_two_workers_makes_the_same_of_an_example(clustered: Path, name: str) -> None:
    engines = Artifacts(clustered / name / "embedded"), Artifacts(clustered / name / "cluster")
    one, other = (summary.read(out.features, FeaturesSummary) for out in engines)
    assert one is not None
    assert other is not None
    assert one.model_copy(update={"seconds": {}}) == other.model_copy(update={"seconds": {}})
    different = [table.table for table in tables_of(config_of(clustered / name), *engines) if not table.equal]
    assert different == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_a_day_opens_no_other_days_features_and_examples(folder: Path, engine: str) -> None:
    whole, day = (summary.read(Artifacts(folder / DAILY / name).features, FeaturesSummary)
                  for name in (engine, f"{engine}-day"))
    assert whole is not None
    assert day is not None
    assert day.day is not None
    assert {window: rows.content_hash for window, rows in day.examples.items()} == {
        window: rows.content_hash for window, rows in whole.examples.items()}


@pytest.mark.slow
def test_late_clicks_change_the_same_days_on_both_engines_and_leave_the_others_untouched(folder: Path) -> None:
    case, written = folder / LATE, {}
    for engine in ("embedded", "spark"):
        before, late = (Artifacts(case / name) for name in (engine, f"{engine}-late"))
        found = summary.read(late.features, FeaturesSummary)
        assert found is not None
        assert found.ingest.written == (LATE_DAY,)
        written[engine] = found.features.written
        untouched = set(found.features.rows_of_day) - set(written[engine])
        assert untouched
        for file in (file for day in untouched for file in before.features.glob(f"day={day}/*.parquet")):
            assert (late.features / file.relative_to(before.features)).stat().st_mtime_ns == file.stat().st_mtime_ns
    assert written["spark"] == written["embedded"] != ()
    engines = Artifacts(case / "embedded-late"), Artifacts(case / "spark-late")
    assert [table.table for table in tables_of(config_of(case), *engines) if not table.equal] == []
