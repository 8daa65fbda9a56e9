"""Whatever the batches, an interval is what a plain filter of all rows finds."""

from __future__ import annotations

import numpy as np
import pytest

from serving.item_counters import sorted_runs
from serving.item_counters.sorted_runs import SortedRuns


@pytest.mark.parametrize("longest", [8, 1000])
def test_an_interval_holds_its_rows_and_what_is_forgotten_is_in_none(
    monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    monkeypatch.setattr(sorted_runs, "LONGEST", longest)
    draw, runs, rows = np.random.default_rng(1), SortedRuns(np.int64, np.int32), list[tuple[int, int]]()
    for number in range(200):
        times = draw.integers(number, number + 40, draw.integers(0, 6))
        runs.add(times, np.full(len(times), number))
        rows += [(int(time), number) for time in times]
        if number % 7 == 0:
            runs.forget(number)
            rows = [row for row in rows if row[0] > number]
        found = runs.between(number + 5, number + 20)
        assert sorted(zip(*(part.tolist() for part in found), strict=True)) == sorted(
            row for row in rows if number + 5 < row[0] <= number + 20)
        assert len(runs) == len(rows)


def test_of_nothing_there_are_columns_of_their_types() -> None:
    assert [part.dtype for part in SortedRuns(np.int64, np.uint8).between(0, 9)] == [np.int64, np.uint8]


def test_runs_that_were_taken_stay_as_they_were() -> None:
    rows = SortedRuns(np.int64, np.int32)
    rows.add(np.array([3, 1]), np.array([0, 1]))
    taken = rows.runs
    rows.add(np.array([2]), np.array([2]))
    rows.forget(2)
    assert [[part.tolist() for part in run] for run in taken] == [[[1, 3], [1, 0]]]
