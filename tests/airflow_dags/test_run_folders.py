"""Folders of past runs: which crosses a day takes, and what is removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_dags.run_folders import CROSSES, newest_crosses, remove_old, take_crosses


def search(runs: Path, day: str) -> None:
    (runs / "crosses" / day / CROSSES).parent.mkdir(parents=True)
    (runs / "crosses" / day / CROSSES).write_text(day)


def test_a_day_takes_the_newest_search_that_is_not_younger(tmp_path: Path) -> None:
    for day in ("2026-01-04", "2026-01-11", "2026-01-18"):
        search(tmp_path, day)
    (tmp_path / "crosses" / "2026-01-12").mkdir()  # begun and not ended
    assert newest_crosses(tmp_path, "2026-01-03") is None
    take_crosses(tmp_path, "2026-01-17")
    assert (tmp_path / "2026-01-17" / CROSSES).read_text() == "2026-01-11"


def test_a_search_of_the_day_itself_counts_and_no_search_leaves_none(tmp_path: Path) -> None:
    search(tmp_path, "2026-01-11")
    take_crosses(tmp_path, "2026-01-11")
    assert (tmp_path / "2026-01-11" / CROSSES).exists()
    take_crosses(tmp_path, "2026-01-10")
    assert not (tmp_path / "2026-01-10" / CROSSES).exists()


@pytest.mark.parametrize("prefix", ["", "day="])
def test_only_the_newest_days_stay_and_nothing_else_is_touched(tmp_path: Path, prefix: str) -> None:
    for name in ("2026-01-01", "2026-01-02", "2026-01-03"):
        (tmp_path / f"{prefix}{name}" / "inside").mkdir(parents=True)
    (tmp_path / "crosses").mkdir()
    (tmp_path / ".removed-2025-12-30").mkdir()  # of a run that was killed
    assert remove_old(tmp_path, 2) == [f"{prefix}2026-01-01"]
    assert {path.name for path in tmp_path.iterdir()} == {"crosses", f"{prefix}2026-01-02", f"{prefix}2026-01-03"}
    assert remove_old(tmp_path, 2) == []


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert remove_old(tmp_path / "none", 3) == []
