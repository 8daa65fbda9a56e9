from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from models.examples.window_part import WindowPart, holdout_days


@given(st.dictionaries(st.dates().map(str), st.integers(1, 100), min_size=2, max_size=9), st.floats(0.05, 0.9))
def test_held_days_are_the_last_ones_and_hold_enough(rows: dict[str, int], share: float) -> None:
    holdout = holdout_days(rows, share)
    fit = set(rows) - holdout
    assert fit
    assert holdout
    assert max(fit) < min(holdout)
    assert sum(rows[d] for d in holdout) >= share * sum(rows.values()) or len(fit) == 1


def test_one_day_has_no_held_day() -> None:
    assert holdout_days({"2026-01-01": 5}, 0.2) == set()


def test_parts_are_disjoint_and_whole_days(item_world: Any) -> None:
    folder, spec = item_world.train.folder, item_world.train.spec
    fit, holdout = (WindowPart(folder, spec, part, 0.3) for part in ("fit", "holdout"))
    assert fit.by_day
    assert fit.rows + holdout.rows == item_world.train.rows
    assert sorted([*fit.column("_row"), *holdout.column("_row")]) == sorted(item_world.train.column("_row"))
    assert {g.path.parent.name for g in fit.groups}.isdisjoint(g.path.parent.name for g in holdout.groups)


def test_a_single_day_is_cut_by_row(item_world: Any, tmp_path: Path) -> None:
    day = tmp_path / "day=2026-01-01"
    shutil.copytree(next(item_world.train.folder.glob("day=*")), day)
    fit, holdout = (WindowPart(tmp_path, item_world.train.spec, part, 0.3) for part in ("fit", "holdout"))
    assert not fit.by_day
    assert holdout.rows / (fit.rows + holdout.rows) == pytest.approx(0.3, abs=0.05)
    rows = np.concatenate([batch.row.numpy() for batch in holdout.batches(256)])
    np.testing.assert_array_equal(np.sort(rows), np.sort(holdout.column("_row")))
    assert not np.isin(rows, fit.column("_row")).any()


def test_an_empty_part_is_refused(item_world: Any, tmp_path: Path) -> None:
    shutil.copytree(next(item_world.train.folder.glob("day=*")), tmp_path / "day=2026-01-01")
    with pytest.raises(DataError, match="part 'holdout' has no row"):
        WindowPart(tmp_path, item_world.train.spec, "holdout", 1e-12)
