"""A range by its order equals a range by comparing every number."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from serving.bundle.number_column import NumberColumn, from_raw, scanned

NUMBERS = st.floats(-3, 3, width=32) | st.just(math.nan)
BOUNDS = st.floats(-4, 4) | st.sampled_from([-math.inf, math.inf, 1e300, -1e300])


@given(st.lists(NUMBERS, max_size=40), BOUNDS, BOUNDS, st.sampled_from([np.float32, np.float64]))
def test_a_range_holds_what_comparing_finds(values: list[float], least: float, most: float, kind: type) -> None:
    found = NumberColumn(np.array(values, dtype=kind)).within(least, most)
    with np.errstate(over="ignore"):
        low, high = kind(least), kind(most)
    expected = [place for place, value in enumerate(values) if low <= kind(value) <= high]
    assert found.rows().tolist() == expected
    assert scanned(np.array(values, dtype=kind), least, most).rows().tolist() == expected


def test_narrow_and_wide_ranges_of_many_items_are_the_same_by_either_way() -> None:
    drawn = np.random.default_rng(4).normal(size=5000)
    drawn[:5] = [-math.nan, math.nan, -0.0, math.inf, -math.inf]
    for values in (drawn, drawn.astype(np.float32)):
        column = NumberColumn(values)
        for least, most in ((0.0, 0.001), (-0.1, 0.1), (-9.0, 9.0), (1.0, -1.0), (0.0, 0.0), (4.0, math.inf)):
            assert column.within(least, most).rows().tolist() == scanned(values, least, most).rows().tolist()


def test_raw_numbers_are_kept_and_times_are_seconds() -> None:
    moment = datetime(2026, 1, 5, 0, 0, 0, 500_000, tzinfo=UTC)
    for made, expected in (
        (pa.chunked_array([[1, None, 3]]), [1, math.nan, 3]),
        (pa.chunked_array([[0.5, math.nan]]), [0.5, math.nan]),
        (pa.chunked_array([[Decimal("1.25")]]), [1.25]),
        (pa.chunked_array([pa.array([moment, None], pa.timestamp("us", "UTC"))]), [moment.timestamp(), math.nan]),
        (pa.chunked_array([pa.array([moment.replace(tzinfo=None)], pa.timestamp("us"))]), [moment.timestamp()]),
        (pa.chunked_array([pa.array([date(1970, 1, 3)])]), [2 * 86_400]),
    ):
        np.testing.assert_array_equal(from_raw(made, "x").values, np.array(expected, dtype=np.float64))


@pytest.mark.parametrize("value", ["dear", True, [1.0]])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(DataError, match="column 'x' is of the type"):
        from_raw(pa.chunked_array([[value]]), "x")


def test_a_saved_column_is_mapped(tmp_path: Path) -> None:
    NumberColumn(np.array([2.0, math.nan, 1.0])).save(tmp_path, "x")
    found = NumberColumn.load(tmp_path, "x")
    assert isinstance(found.values, np.memmap)
    assert found.within(1.5, 2.5).rows().tolist() == [0]
