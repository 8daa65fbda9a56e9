from __future__ import annotations

import numpy as np
import pytest

from serving.changing_index import uncoded_rows
from serving.changing_index.uncoded_rows import UncodedRows


def test_rows_come_and_leave_and_what_was_read_stays_as_it_was() -> None:
    uncoded = UncodedRows()
    uncoded.put(np.array([3, 9, 20, 41]), np.array([True, True, False, True]))
    read = uncoded.rows
    uncoded.put(np.array([9, 50]), np.array([False, True]))
    assert read.tolist() == [3, 9, 41]
    assert uncoded.rows.tolist() == [3, 41, 50]
    same = uncoded.rows
    uncoded.put(np.array([1, 2]), np.zeros(2, dtype=bool))
    assert uncoded.rows is same
    uncoded.put(np.array([3]), np.ones(1, dtype=bool))  # its vector is another one
    assert uncoded.rows is not same


def test_there_are_no_more_than_there_is_room_for_and_who_is_there_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    uncoded = UncodedRows()
    monkeypatch.setattr(uncoded_rows, "MOST", 3)
    uncoded.put(np.array([1, 2]), np.ones(2, dtype=bool))
    rows = np.array([1, 5, 6, 7])
    assert uncoded.taken(rows, np.array([True, False, True, True])).tolist() == [True, False, True, False]
    assert uncoded.taken(rows, np.ones(4, dtype=bool)).tolist() == [True, True, False, False]
