from __future__ import annotations

from serving.bundle.filter_column import from_raw
from serving.catalogue.changing_filter import ChangingFilter


def found(column: ChangingFilter, *wanted: str) -> list[int]:
    return column.items(wanted).rows().tolist()


def test_rows_leave_their_old_value_and_have_the_new_one() -> None:
    column = ChangingFilter(from_raw(["x", "y", None, "x"], "c"), 16)
    assert found(column, "x") == [0, 3]
    column.put(0, "y")
    column.put(9, "new")
    column.put(3, None)
    assert found(column, "x") == [0, 3]
    column.publish()
    assert found(column, "x") == []
    assert found(column, "y", "new") == [0, 1, 9]
    assert found(column, "nobody's", "long " * 100) == []
    column.put(0, "x")
    column.publish()
    assert found(column, "x") == [0]
    assert (column.stored_value(1), column.stored_value(2)) == ("y", None)
