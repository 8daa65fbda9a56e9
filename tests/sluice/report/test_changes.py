"""A report says what changed since the last bundle's, in its figures' own direction, and forgets nothing in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import DataError
from contracts.summaries import summary
from contracts.summaries.run import RunSummary
from sluice.report.changes import HISTORY, Change, changes, compared
from sluice.report.report import write_report
from tests.sluice import run_records as records


def a_run(version: str, auc: float) -> RunSummary:
    return RunSummary(name="shop", seconds=10.0, ranker="dnn", models={"dnn": records.ranker(auc=auc)},
                      bundle=records.bundle(version=version))


def auc_of(folder: Path, run: RunSummary, since: Path | None = None) -> Change:
    found = changes(folder, run, since)
    assert found is not None
    return next(change for change in found.rows if change.figure == "AUC")


def test_the_first_report_has_nothing_to_compare_with_and_the_same_bundle_again_neither(tmp_path: Path) -> None:
    assert changes(tmp_path, a_run("shop-1", 0.7)) is None
    assert changes(tmp_path, a_run("shop-1", 0.7)) is None


def test_the_next_bundle_is_held_against_the_last_and_so_is_a_report_made_again(tmp_path: Path) -> None:
    changes(tmp_path, a_run("shop-1", 0.7))
    for _ in range(2):
        assert auc_of(tmp_path, a_run("shop-2", 0.75))[1:] == (0.7, 0.75, True)
    assert auc_of(tmp_path, a_run("shop-3", 0.72))[1:] == (0.75, 0.72, False)


def test_another_folders_run_may_be_named(tmp_path: Path) -> None:
    summary.write(tmp_path / "before", a_run("shop-1", 0.6))
    (tmp_path / "now").mkdir()
    assert auc_of(tmp_path / "now", a_run("shop-2", 0.7), tmp_path / "before").before == 0.6
    with pytest.raises(DataError, match="finished run or demo"):
        changes(tmp_path / "now", a_run("shop-2", 0.7), tmp_path / "nothing")


def test_less_is_better_where_it_is() -> None:
    before = {"AUC": 1.0, "log loss": 0.5, "items": 9.0, "gone": 1.0}
    rows = compared(before, {"AUC": 1.0, "log loss": 0.4, "items": 8.0})
    assert {row.figure: row.better for row in rows} == {"AUC": None, "log loss": True, "items": None}


def test_a_damaged_history_says_so(tmp_path: Path) -> None:
    (tmp_path / HISTORY).write_text("{}x")
    with pytest.raises(DataError, match=f"{HISTORY} is damaged"):
        changes(tmp_path, a_run("shop-1", 0.7))


def test_the_page_shows_it(tmp_path: Path) -> None:
    for version, auc in (("shop-1", 0.7), ("shop-2", 0.75)):
        summary.write(tmp_path, a_run(version, auc))
        text = write_report(tmp_path).read_text("utf-8")
    assert "What changed since the last run" in text
    assert "<td>AUC</td><td>0.7000</td><td>0.7500</td><td>+0.0500</td><td>better</td>" in text
