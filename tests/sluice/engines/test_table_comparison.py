from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sluice.engines.table_comparison import compare_table

ROWS: dict[str, list[Any]] = {
    "_row": [1, 2, 3], "v": [0.0, float("nan"), None], "list": [[1, None], [], None], "t": ["a", "ü", None]}


def written(folder: Path, columns: dict[str, Any], parts: int = 1) -> Path:
    table = pa.table(columns)
    for part in range(parts):
        (folder / "day=2026-01-05").mkdir(parents=True, exist_ok=True)
        pq.write_table(table.slice(part * 3 // parts, 3 // parts), folder / "day=2026-01-05" / f"{part}.parquet")
    return folder


def explained(column: str) -> str | None:
    return "log.derive.v = 'x'" if column == "v" else None


def test_the_same_rows_in_another_order_and_other_files_are_equal(tmp_path: Path) -> None:
    turned = {**{name: values[::-1] for name, values in ROWS.items()}, "v": [None, float("nan"), -0.0]}
    found = compare_table("t", written(tmp_path / "a", ROWS), written(tmp_path / "b", turned, parts=3), explained)
    assert found.equal
    assert (found.rows, found.columns, found.types) == (3, (), ())


def test_a_column_that_differs_is_named_with_a_row_both_values_and_its_expression(tmp_path: Path) -> None:
    other = {**ROWS, "v": [0.0, float("nan"), 1.5], "t": ["a", "u", None]}
    found = compare_table("t", written(tmp_path / "a", ROWS), written(tmp_path / "b", other), explained)
    assert not found.equal
    t, v = found.columns
    assert (t.column, t.rows, t.key, t.embedded, t.spark, t.expression) == ("t", 1, "2", "'ü'", "'u'", None)
    assert (v.column, v.key, v.embedded, v.spark, v.expression) == ("v", "3", "None", "1.5", "log.derive.v = 'x'")


def test_rows_of_one_engine_alone_and_another_type_differ(tmp_path: Path) -> None:
    fewer = {name: values[:2] for name, values in ROWS.items()} | {"t": [1, 2]}
    found = compare_table("t", written(tmp_path / "a", ROWS), written(tmp_path / "b", fewer), explained)
    assert not found.equal
    assert (found.only_embedded, found.only_spark) == (1, 0)
    assert found.types == ("t: string on embedded, int64 on Apache Spark",)


def test_a_row_that_is_there_twice_counts_twice(tmp_path: Path) -> None:
    once, twice = {"reason": ["x"]}, {"reason": ["x", "x"]}
    for name, columns in (("a", once), ("b", twice)):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table(columns), tmp_path / name / "0.parquet")
    found = compare_table("t", tmp_path / "a", tmp_path / "b", explained)
    assert not found.equal
    assert found.only_spark == 1


def test_a_folder_without_files_has_no_rows(tmp_path: Path) -> None:
    found = compare_table("t", tmp_path / "none", written(tmp_path / "b", ROWS), explained)
    assert not found.equal
    assert found.only_spark == 3


def test_rows_whose_ids_differ_throughout_are_matched_by_what_they_are_of(tmp_path: Path) -> None:
    known = {"_user": ["u", "u", "w"], "_item": ["i", "j", "i"], "_time": [1, 1, 2], "v": [1, 2, 3]}
    here, there = {"_row": [1, 2, 3], **known}, {"_row": [7, 8, 9], **known, "v": [1, 2, 4]}
    found = compare_table("t", written(tmp_path / "a", here), written(tmp_path / "b", there), explained)
    (v,) = found.columns
    assert (v.column, v.rows, v.embedded, v.spark) == ("v", 1, "3", "4")
    assert (found.only_embedded, found.only_spark, found.equal) == (0, 0, False)
