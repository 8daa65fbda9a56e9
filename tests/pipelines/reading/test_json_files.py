from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

from contracts.errors import DataError
from pipelines.reading.json_files import inferred, stage_json
from pipelines.reading.text_files import CORRUPT


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "log.json"
    lines = ['{"b": 1, "a": "x", "c": [1, 2]}', "",
             '{"b": 2.5, "a": 3, "d": {"e": true}}', '{"b":', "[1]", '{"a": null}']
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_are_what_the_objects_hold(file: Path) -> None:
    found = {field.name: field.dataType.simpleString() for field in inferred([file], "utf-8")}
    assert found == {"a": "string", "b": "double", "c": "array<bigint>", "d": "struct<e:boolean>"}
    assert list(found) == sorted(found)


def test_lines_that_do_not_fit_keep_their_text(file: Path, tmp_path: Path) -> None:
    schema = T.StructType().add("a", "string").add("b", T.LongType())
    stage_json([file], schema, "utf-8", tmp_path / "rows")
    rows = pq.read_table(tmp_path / "rows").to_pylist()
    assert [(row["a"], row["b"], row[CORRUPT]) for row in rows] == [
        ("x", 1, None), ("3", None, '{"b": 2.5, "a": 3, "d": {"e": true}}'), (None, None, '{"b":'), (None, None, "[1]"),
        (None, None, None),
    ]


def test_what_is_inferred_can_be_read(file: Path, tmp_path: Path) -> None:
    stage_json([file], inferred([file], "utf-8"), "utf-8", tmp_path / "rows")
    rows = pq.read_table(tmp_path / "rows").to_pylist()
    assert [row["b"] for row in rows] == [1.0, 2.5, None, None, None]
    assert rows[0]["c"] == [1, 2]


def test_bytes_of_another_encoding_are_refused_with_the_option_that_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes('{"city": "Köln"}\n'.encode("latin-1"))
    with pytest.raises(DataError, match=r'holds bytes that are no utf-8.*encoding = "ISO-8859-1"'):
        inferred([path], "utf-8")
    assert inferred([path], "iso-8859-1").names == ["city"]


def test_half_a_surrogate_pair_a_huge_number_and_a_mark_of_utf8_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    lines = [r'{"a": 1, "b": "x\ud83d"}', r'{"a": 18446744073709551616, "b": {"c": "\ud83d"}}']
    path.write_text("\n".join(lines), encoding="utf-8-sig")
    schema = inferred([path], "utf-8")
    assert {field.name: field.dataType.simpleString() for field in schema} == {"a": "string", "b": "string"}
    stage_json([path], schema, "utf-8", tmp_path / "rows")
    assert pq.read_table(tmp_path / "rows").to_pylist() == [
        {"a": "1", "b": "x?", CORRUPT: None}, {"a": "18446744073709551616", "b": '{"c":"?"}', CORRUPT: None}]
