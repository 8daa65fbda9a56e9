"""What a user has at a moment."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from contracts.artifacts import ITEM, ROW
from pipelines.negatives.takes import Taken, Takes
from pipelines.windows.publish_clock import AT, ENTER

NAMES = pa.array(["a", "b", "c"])


def takes(repeat: bool) -> Takes:
    """User 0 takes a, b, and a once more; user 1 takes b twice at one moment."""
    table = pa.table({ITEM: ["a", "b", "a", "b", "b"], AT: [10, 20, 30, 20, 20], ENTER: [11, 21, 31, 21, 21],
                      ROW: [5, 4, 3, 2, 1]})
    return Takes.read(table, np.array([0, 0, 0, 1, 1]), NAMES, repeat)


def test_an_item_is_had_from_its_take_on_and_by_its_taker_alone() -> None:
    read = takes(repeat=False)
    taken = Taken(read, len(NAMES))
    assert read.item.tolist() == [0, 1, 0, 1, 1]
    assert taken.has(np.array([0, 0, 0, 1, 1]), np.array([0, 0, 2, 0, 1]), np.array([9, 10, 99, 99, 20])).tolist() == [
        False, True, False, False, True]
    assert taken.first.tolist() == [True, True, False, False, True]  # of equal takes that of the lowest hash


@pytest.mark.parametrize(("moment", "expected"), [(0, True), (1, False)])
def test_where_takes_repeat_it_is_had_at_the_moment_alone(moment: int, expected: bool) -> None:
    read = takes(repeat=True)
    taken = Taken(read, len(NAMES))
    assert len(set(read.holder.tolist())) == 4
    assert taken.first.tolist() == [True, True, True, False, True]
    assert taken.has(read.holder[[moment]], np.array([0]), read.at[[moment]]).tolist() == [expected]
