"""Profiles are kept with the content of the day they describe; a refused day is no history."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.errors import DataError
from pipelines.jobs import quality_job
from tests.exported_figures import exported
from tests.pipelines.quiet_days import CONFIG, DAYS, LAST, write_day


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    made = Artifacts(tmp_path_factory.mktemp("out"))
    for number in range(1, DAYS + 1):
        write_day(made, number)
    (made.features / "summary.json").write_text("{}")  # lies beside the days in every run, and is no table
    return made


def test_a_day_that_did_not_change_is_not_profiled_again(out: Artifacts) -> None:
    said: list[str] = []
    quality_job.evaluate_day(CONFIG, out, LAST, said.append)
    said.clear()
    quality_job.evaluate_day(CONFIG, out, LAST, said.append)
    assert said == []
    write_day(out, 2, poisoned=True)
    quality_job.evaluate_day(CONFIG, out, LAST, said.append)
    write_day(out, 2)
    assert said == ["2026-01-02"]


def test_a_day_leaves_its_figures_for_prometheus(out: Artifacts) -> None:
    """Seconds, rows, and how far each column is from the days before; why it was refused, as a number."""
    told = quality_job.evaluate_day(CONFIG, out, LAST)
    found = exported(out.quality, "quality")
    assert found["figures.rows"] == next(one.value for one in told.figures if one.figure == "rows") > 0
    assert {f"figures.{one.figure}" for one in told.figures} <= set(found)
    assert any(name.startswith("figures.psi.") for name in found)
    assert (found["refused"], found["judged"]) == (0, told.judged)
    assert found["seconds"] == told.seconds


def test_what_cannot_be_judged_is_an_error(out: Artifacts, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no days to judge"):
        quality_job.evaluate_day(CONFIG, Artifacts(tmp_path))
    with pytest.raises(DataError, match="no day 2025-01-01"):
        quality_job.evaluate_day(CONFIG, out, "2025-01-01")
    with pytest.raises(DataError, match="has no profile; run `sluice quality` first"):
        quality_job.read_profile(out, "2025-01-01")
