from __future__ import annotations

import pyarrow as pa
import pytest

from pipelines.engine.arrow_batches import LookUp, larger, looked_up, plain


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


@pytest.mark.parametrize("keys", [["b", "a"], []])
def test_columns_are_looked_up_by_key_and_missing_where_there_is_none(keys: list[str]) -> None:
    columns = {"k": pa.array(keys, pa.large_string()), "x": pa.array([len(keys)] * len(keys), pa.int64()),
               "l": pa.array([[key] for key in keys], pa.list_(pa.string()))}
    table = LookUp.of(pa.table(columns), "k")
    asked = ["a", None, "z", "b", "a"]
    batches = [pa.record_batch({"k": pa.array([key], pa.string()), "n": [n]}) for n, key in enumerate(asked)]
    found = pa.Table.from_batches(looked_up(iter(batches), [table], 3))
    assert found.column_names == ["k", "n", "x", "l"]
    assert found["n"].to_pylist() == [0, 1, 2, 3, 4]
    assert found["x"].to_pylist() == [len(keys) if key in keys else None for key in asked]
    assert found["l"].to_pylist() == [[key] if key in keys else None for key in asked]
