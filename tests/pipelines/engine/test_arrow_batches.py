from __future__ import annotations

import pyarrow as pa
import pytest

from pipelines.engine.arrow_batches import larger, plain


def test_texts_of_any_width_become_ordinary_strings() -> None:
    wide = pa.record_batch({
        "v": pa.array(["a", None], pa.string_view()), "w": pa.array(["b", "c"], pa.large_string()),
        "l": pa.array([["x"], []], pa.large_list(pa.string_view())), "n": pa.array([1, 2]),
    })
    found = plain(wide)
    assert found.schema.types == [pa.string(), pa.string(), pa.list_(pa.string()), pa.int64()]
    assert found.to_pylist() == wide.to_pylist()


@pytest.mark.parametrize(("sizes", "expected"), [([3, 3, 3, 1], [6, 4]), ([0, 0], []), ([], []), ([9], [9])])
def test_small_batches_are_joined_and_no_row_is_lost(sizes: list[int], expected: list[int]) -> None:
    batches = [pa.record_batch({"x": pa.array(range(size), pa.int64())}) for size in sizes]
    found = list(larger(iter(batches), 5))
    assert [batch.num_rows for batch in found] == expected
    rows = [row for batch in batches for row in batch.column(0).to_pylist()]
    assert [row for batch in found for row in batch.column(0).to_pylist()] == rows
