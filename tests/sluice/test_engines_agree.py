"""The embedded engine and Apache Spark make the same tables of every example and of random logs, or both refuse."""

from __future__ import annotations

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
from tests.sluice.engine_cases import DAILY, SEEDS, WRITERS, cases, config_of, run_cases, write_cases


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("engines")
    write_cases(made)
    run_cases(made, "embedded")
    command = [sys.executable, "-m", "tests.sluice.engine_cases", str(made), "local[2]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[max(0, done.stderr.find("Traceback")):][:3000]
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WRITERS, *(f"random_{seed}" for seed in SEEDS)])
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
@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_a_day_opens_no_other_days_features_and_examples(folder: Path, engine: str) -> None:
    whole, day = (summary.read(Artifacts(folder / DAILY / name).features, FeaturesSummary)
                  for name in (engine, f"{engine}-day"))
    assert whole is not None
    assert day is not None
    assert day.day is not None
    assert {window: rows.content_hash for window, rows in day.examples.items()} == {
        window: rows.content_hash for window, rows in whole.examples.items()}
