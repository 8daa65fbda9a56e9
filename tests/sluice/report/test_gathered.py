"""A folder in which any of the jobs were done: what was is read, what was not is named with its command."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import DataError
from contracts.summaries import summary
from contracts.summaries.run import RunSummary
from sluice.report.gathered import JOBS, gathered, missing, reliability_of
from tests.sluice import run_records as records


def test_a_folder_without_any_summary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="finished run or demo"):
        gathered(tmp_path)


@pytest.mark.parametrize("done", [("features",), ("train",), ("features", "leaks", "train", "bundle"), tuple(JOBS)])
def test_what_was_done_is_read_and_the_rest_is_named_with_its_command(done: tuple[str, ...], tmp_path: Path) -> None:
    records.write_jobs(tmp_path, *done)
    run = gathered(tmp_path)
    assert {name for name in JOBS if getattr(run, name) is not None} == set(done)
    absent = missing(run)
    assert set(absent) == set(JOBS) - set(done)
    assert all(JOBS[name] in reason for name, reason in absent.items())


def test_models_come_from_training_where_no_whole_run_says_more(tmp_path: Path) -> None:
    records.write_jobs(tmp_path, "train")
    run = gathered(tmp_path)
    assert run.ranker == "dnn"
    assert run.models == records.trained().models


def test_the_runs_own_figures_count_and_its_reasons_too(tmp_path: Path) -> None:
    records.write_jobs(tmp_path, "train", "bundle")
    reason = "crosses.budget is 0; set it to search"
    summary.write(tmp_path, RunSummary(
        name="shop", bundle=records.bundle(version="shop-def"), skipped={"crosses": reason, "gauc": "no users"}))
    run = gathered(tmp_path)
    assert run.bundle is not None
    assert run.bundle.version == "shop-def"
    assert missing(run)["crosses"] == reason
    assert missing(run)["gauc"] == "no users"
    assert "train" not in missing(run)


def test_a_federated_run_lacks_nothing_of_central_training(tmp_path: Path) -> None:
    records.write_jobs(tmp_path, "features", "leaks", "bundle", "federate")
    assert missing(gathered(tmp_path)) == {}


def test_rounds_of_a_deployment_are_found_by_their_setting(tmp_path: Path) -> None:
    records.write_jobs(tmp_path, "features", "leaks", "bundle")
    assert gathered(tmp_path).deployed is None
    summary.write(tmp_path / "federated" / "runs" / "cpp5-flower", records.deployed())
    assert gathered(tmp_path).deployed == {"cpp5": records.deployed()}
    assert missing(gathered(tmp_path)) == {}


def test_a_damaged_summary_is_named(tmp_path: Path) -> None:
    out = records.write_jobs(tmp_path, "features", "bundle")
    (out.features / summary.FILE).write_text("{}")
    with pytest.raises(DataError, match="features"):
        gathered(tmp_path)


def test_the_calibration_curve_is_in_the_rankers_own_summary(tmp_path: Path) -> None:
    out = records.write_jobs(tmp_path, "train")
    assert reliability_of(tmp_path, None) is None
    assert reliability_of(tmp_path, "dnn") is None
    summary.write(out.model("dnn"), records.ranker(curves=records.curves()))
    assert reliability_of(tmp_path, "dnn") == records.curves().reliability
