"""Equal counts by slices: test_running_counters.py and, on random logs, test_history_features.py."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipelines.features.measures import MOMENT, QUERY
from pipelines.features.sliced_counters import SLICE, within_slices


def test_changes_of_other_slices_are_left_to_what_is_carried() -> None:
    table = pa.table({
        "key": ["a"] * 4, SLICE: [0, 10, 10, 10], MOMENT: [3, 11, 12, 13], QUERY: [False, False, True, False],
        "n": pa.array([5, 2, None, -1], pa.int64()),
    })
    found = within_slices(table, np.array([0, 1, 1, 1]), ("key", SLICE), ("n",))
    assert found.to_pylist() == [{"key": "a", SLICE: 10, MOMENT: 12, "n": 2}]
