"""Profiles are kept with the content of the day they describe; a refused day is no history."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.errors import DataError
from contracts.features.found_crosses import FoundCross, FoundCrosses
from pipelines.jobs import quality_job
from tests.exported_figures import exported
from tests.heard_progress import heard
from tests.pipelines.quiet_days import CONFIG, DAYS, LAST, ROWS, write_day


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    made = Artifacts(tmp_path_factory.mktemp("out"))
    for number in range(1, DAYS + 1):
        write_day(made, number)
    (made.features / "summary.json").write_text("{}")  # lies beside the days in every run, and is no table
    return made


def test_a_day_that_did_not_change_is_not_profiled_again(out: Artifacts) -> None:
    quality_job.evaluate_day(CONFIG, out, LAST)
    first = stamps(out)
    quality_job.evaluate_day(CONFIG, out, LAST)
    assert stamps(out) == first
    write_day(out, 2, poisoned=True)
    quality_job.evaluate_day(CONFIG, out, LAST)
    write_day(out, 2)
    assert {day for day, stamp in stamps(out).items() if stamp != first[day]} == {"2026-01-02"}


def stamps(out: Artifacts) -> dict[str, int]:
    """When the profile of each day was written."""
    return {day: (quality_job.folder_of(out, day) / quality_job.PROFILE).stat().st_mtime_ns
            for day in (f"2026-01-{number:02d}" for number in range(1, DAYS + 1))}


def test_days_are_counted_up_to_the_one_that_is_judged(out: Artifacts) -> None:
    with heard() as said:
        quality_job.evaluate_day(CONFIG, out, "2026-01-03")
    assert said == [("days", done, 3) for done in range(4)]


def test_a_day_leaves_its_figures_for_prometheus(out: Artifacts) -> None:
    """Seconds, rows, and how far each column is from the days before; why it was refused, as a number."""
    told = quality_job.evaluate_day(CONFIG, out, LAST)
    found = exported(out.quality, "quality")
    assert found["figures.rows"] == next(one.value for one in told.figures if one.figure == "rows") > 0
    assert {f"figures.{one.figure}" for one in told.figures} <= set(found)
    assert any(name.startswith("figures.psi.") for name in found)
    assert (found["refused"], found["judged"]) == (0, told.judged)
    assert found["seconds"] == told.seconds


@pytest.mark.parametrize("others", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_nulls_of_the_column(spark: SparkSession, tmp_path: Path,
                                                             others: float) -> None:
    """Of some rows of the last day, and of all rows of a day before."""
    out = Artifacts(tmp_path)
    for number in range(1, DAYS + 1):
        write_day(out, number)
    price(out, DAYS, lambda values: [others, *values[1:]])
    price(out, 2, lambda values: [others] * len(values))
    found = {one.figure: one.value for one in quality_job.evaluate_day(CONFIG, out, LAST).figures}
    assert found["null_rate.price"] == pytest.approx(1 / ROWS)
    assert found["psi.price"] < 0.1


def price(out: Artifacts, number: int, change: Callable[[list[float]], list[float]]) -> None:
    path = out.features / f"day=2026-01-{number:02d}" / "part-0.parquet"
    table = pq.ParquetFile(path).read()
    pq.write_table(table.set_column(table.column_names.index("price"), "price", [change(table["price"].to_pylist())]),
                   path)


def test_a_found_cross_of_a_field_that_is_gone_holds_no_day_up(out: Artifacts, tmp_path: Path) -> None:
    shutil.copytree(out.features, Artifacts(tmp_path).features)
    cross = FoundCross(name="city_x_gone", parts=("city", "gone"), importance=0.9, gain=5.0, support=3)
    FoundCrosses(digest="d", crosses=(cross,)).write(Artifacts(tmp_path).crosses)
    assert not quality_job.evaluate_day(CONFIG, Artifacts(tmp_path), LAST).refused


def test_what_cannot_be_judged_is_an_error(out: Artifacts, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no days to judge"):
        quality_job.evaluate_day(CONFIG, Artifacts(tmp_path))
    with pytest.raises(DataError, match="no day 2025-01-01"):
        quality_job.evaluate_day(CONFIG, out, "2025-01-01")
    with pytest.raises(DataError, match="has no profile; run `sluice quality` first"):
        quality_job.read_profile(out, "2025-01-01")
