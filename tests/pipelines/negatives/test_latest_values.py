"""What the log says of an item is what it said before the moment that asks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from contracts.artifacts import ITEM, ROW
from pipelines.negatives.latest_values import ASKED, MOMENT, as_of


def test_each_column_has_its_own_latest_value_of_the_item() -> None:
    known = [(1, "a", 10, "red", 1.0), (2, "a", 20, None, 2.0), (3, "b", 5, "blue", None), (4, "a", 30, "green", 3.0)]
    asked = [(11, "a", 9), (12, "a", 10), (13, "a", 25), (14, "b", 100), (15, "c", 100)]
    names = (ROW, ITEM, MOMENT, "colour", "price")
    rows: list[dict[str, object]] = [{**dict(zip(names, row, strict=True)), ASKED: False} for row in known]
    rows += [{**dict(zip(names, row, strict=False)), ASKED: True, "colour": None, "price": None} for row in asked]
    order = np.random.default_rng(0).permutation(len(rows))
    table = pa.Table.from_pylist(rows).take(pa.array(order))
    group = np.unique(table[ITEM].to_pylist(), return_inverse=True)[1]
    found = {row[ROW]: (row["colour"], row["price"]) for row in as_of(table, group, ("colour", "price")).to_pylist()}
    assert found == {11: (None, None), 12: ("red", 1.0), 13: ("red", 2.0), 14: ("blue", None), 15: (None, None)}
