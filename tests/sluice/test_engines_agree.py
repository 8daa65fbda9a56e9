"""The embedded engine and Apache Spark make the same tables of every example and of random logs, or both refuse; a
standalone cluster of two workers makes them of a random log and one with a heavy key, in `make cluster-test` of all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.features.pair_graph import GraphManifest
from contracts.summaries import summary
from contracts.summaries.features import FeaturesSummary, Ingested
from sluice.engines.comparison import lines, tables_of
from sluice.engines.records import EngineComparison
from tests.pipelines import spark_jobs
from tests.pipelines.features.ordered_clicks import NEWEST_FIRST
from tests.pipelines.spark_processes import cluster
from tests.sluice.engine_cases import (
    CLUSTERED,
    DAILY,
    EVERY,
    EXAMPLES,
    INGESTED,
    LATE,
    LATE_DAY,
    PAIRS,
    READ,
    UNTIL,
    WRITERS,
    cases,
    config_of,
    run_cases,
    write_cases,
)

ROOT = Path(__file__).parents[2]
JOBS, A_WRITE = 70, 4  # at most: of a run with clicks, counters and a sequence; of one more small table


@pytest.fixture(scope="module")
def embedded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases and the embedded engine's output."""
    made: Path = tmp_path_factory.mktemp("engines")
    write_cases(made)
    run_cases(made, "embedded")
    return made


@pytest.fixture(scope="module")
def folder(embedded: Path) -> Path:
    """Output of Apache Spark's local mode, too."""
    _on_spark(str(embedded), "local[2]")
    return embedded


@pytest.fixture(scope="module")
def clustered(embedded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output of a standalone cluster of two workers, too."""
    place = tmp_path_factory.mktemp("workers")
    with cluster(place, "1g") as master:
        _on_spark(str(embedded), master, "cluster")
    assert all(any((place / worker).iterdir()) for worker in ("worker-1", "worker-2"))  # both had an executor
    return embedded


def _on_spark(*arguments: str) -> None:
    command = [sys.executable, "-m", "tests.sluice.engine_cases", *arguments]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr[max(0, done.stderr.find("Traceback")):][:3000]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*EVERY} - {*READ}))
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


def test_every_example_is_a_case() -> None:
    assert set(WRITERS) == {path.stem for path in EXAMPLES.glob("*.toml")}


@pytest.mark.slow
def test_both_engines_make_the_same_pair_graph(folder: Path) -> None:
    one, other = (GraphManifest.read(folder / PAIRS / engine / "pair_rates") for engine in ("embedded", "spark"))
    assert one == other
    assert one.relations


@pytest.mark.slow
@pytest.mark.parametrize("name", READ)
def test_both_engines_read_the_same_events(folder: Path, name: str) -> None:
    engines = Artifacts(folder / name / "embedded"), Artifacts(folder / name / "spark")
    tables = tables_of(config_of(folder / name), *engines)
    assert [table.table for table in tables if not table.equal] == []
    assert "ingest/events" in {table.table for table in tables}
    assert _ingested(engines[0]) == _ingested(engines[1])


def _ingested(out: Artifacts) -> Ingested:
    return Ingested.model_validate_json((out.out / INGESTED).read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("name", CLUSTERED)
def test_a_cluster_of_two_workers_makes_the_same(clustered: Path, name: str) -> None:
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
    out = Artifacts(folder / DAILY / f"{engine}-day")
    others = [file for file in out.out.glob("features/day=*/*.parquet") if file.parent.name != f"day={day.day}"]
    assert others
    assert {file.read_bytes().strip(b"-") for file in others} == {b""}  # as `without_other_days` left them


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


@pytest.mark.slow
def test_both_engines_read_the_log_as_it_stood_when_a_day_ended(folder: Path) -> None:
    engines = Artifacts(folder / LATE / "embedded-until"), Artifacts(folder / LATE / "spark-until")
    assert [table.table for table in tables_of(config_of(folder / LATE), *engines) if not table.equal] == []
    whole = summary.read(Artifacts(folder / LATE / "embedded-late").features, FeaturesSummary)
    assert whole is not None
    found = _ingested(engines[0])
    assert found == _ingested(engines[1])
    assert max(found.days) == UNTIL
    assert found.rows_in < whole.ingest.rows_in


@pytest.fixture(scope="module")
def done_by_spark(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / spark_jobs.RECORD).read_text(encoding="utf-8"))
    return found


@pytest.mark.slow
def test_a_run_on_apache_spark_is_few_jobs_and_more_fields_windows_and_counters_of_a_key_are_no_more(
    done_by_spark: dict[str, Any],
) -> None:
    """The wider run's log has a bad row, too, which is written."""
    assert done_by_spark["usual"] <= JOBS
    assert done_by_spark["wider"] <= done_by_spark["usual"] + A_WRITE


@pytest.mark.slow
def test_apache_spark_does_not_put_the_slices_of_a_heavy_key_together_again(done_by_spark: dict[str, Any]) -> None:
    assert done_by_spark[spark_jobs.HEAVY] == spark_jobs.PARTS


@pytest.mark.slow
def test_clicks_are_in_the_same_order_on_apache_spark(done_by_spark: dict[str, Any]) -> None:
    assert done_by_spark[spark_jobs.ORDER] == [list(NEWEST_FIRST)] * 4
