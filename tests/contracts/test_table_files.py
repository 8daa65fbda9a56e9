from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from contracts.table_files import as_engines_read, is_hidden, is_landed_name, json_object, landed_folder, landed_name


@pytest.mark.parametrize(("within", "hidden"), [
    ("a.csv", False), ("sub/a.csv", False), ("_SUCCESS", True), (".a.csv.crc", True), ("_delta_log/0.json", True),
    (".ipynb_checkpoints/a.csv", True), ("sub/_tmp/a.csv", True), ("_day=1/a.csv", False), (".day=1/a.csv", True),
])
def test_marks_and_what_lies_in_folders_of_tools_are_hidden(within: str, hidden: bool) -> None:
    assert is_hidden(Path(within)) is hidden


@pytest.mark.parametrize(("name", "landed"), [
    (landed_name(1, 2**63), True), ("part-00000.parquet", False), (f"{landed_name(1, 2)}.crc", False),
    ("00000000000000000001.parquet", False)])
def test_landed_files_are_known_by_their_names(name: str, landed: bool) -> None:
    assert is_landed_name(name) is landed


@pytest.mark.parametrize(("text", "found"), [
    ('{"a": [1, null]}', {"a": [1, None]}), ("[1]", None), ('{"a":', None), ("", None),
    (r'{"a": "x\ud83d", "\uDC00": {"b": "\ud83d\ude00"}}', {"a": "x?", "?": {"b": "\U0001f600"}}),
    (r'{"a": "\\ud83d", "b": 18446744073709551616}', {"a": r"\ud83d", "b": 2**64}),
])
def test_a_line_is_an_object_that_utf8_can_hold_or_none(text: str, found: object) -> None:
    assert json_object(text) == found


def of_unit(unit: str, code: pa.DataType) -> pa.Schema:
    """Every place that a time and a category may have."""
    time = pa.timestamp(unit)
    return pa.schema([
        ("zoned", pa.timestamp(unit, "UTC")), ("day", pa.date32()), ("numbers", pa.list_(pa.int8())),
        ("code", code), ("times", pa.list_(time)), pa.field("sure", time, nullable=False),
        ("nested", pa.struct([("a", pa.list_(time)), ("b", pa.string()), ("c", code)]))])


@pytest.mark.parametrize("code", [pa.string(), pa.int64(), pa.timestamp("us")])
def test_times_are_no_finer_than_microseconds_categories_are_their_values_and_all_else_stays(code: pa.DataType) -> None:
    assert as_engines_read(of_unit("ns", pa.dictionary(pa.int32(), code))) == of_unit("us", code)


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_coarser_times_stay_but_within_lists(unit: str) -> None:
    time = pa.timestamp(unit, "UTC")
    found = as_engines_read(pa.schema([("a", time), ("b", pa.list_(time)), ("c", pa.struct([("d", time)]))]))
    fine = pa.timestamp("us", "UTC")
    assert found == pa.schema([("a", time), ("b", pa.list_(fine)), ("c", pa.struct([("d", fine)]))])


def test_unsigned_numbers_are_signed_ones_that_hold_them() -> None:
    found = as_engines_read(pa.schema([("a", pa.uint8()), ("b", pa.uint32()), ("c", pa.list_(pa.uint64()))]))
    assert found == pa.schema([("a", pa.int16()), ("b", pa.int64()), ("c", pa.list_(pa.decimal128(20, 0)))])


@pytest.mark.parametrize("within", [
    pa.list_, pa.large_list, lambda part: pa.list_(part, 2), lambda part: pa.map_(pa.string(), part),
    lambda part: pa.map_(part, pa.string()), lambda part: pa.struct([("a", part)]),
    lambda part: pa.map_(pa.string(), pa.large_list(pa.list_(pa.struct([("a", part)]), 3))),
    lambda part: pa.list_(pa.field("x", part, nullable=False)),
    lambda part: pa.map_(pa.string(), pa.field("value", part, nullable=False), keys_sorted=True),
])
def test_whatever_holds_other_types_is_kept_and_its_types_are_plain(
    within: Callable[[pa.DataType], pa.DataType]
) -> None:
    category = pa.dictionary(pa.int8(), pa.timestamp("ns"))
    for written, read in ((pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")), (category, pa.timestamp("us")),
                          (pa.int8(), pa.int8())):
        assert as_engines_read(pa.schema([("a", within(written))])) == pa.schema([("a", within(read))])


@pytest.mark.parametrize(("path", "folder"), [
    ("{data}/shown", "shown"), ("{data}/logs/part.csv", "logs/part.csv"), ("/mnt/logs/shown", "shown"),
    ("{data}/../shown", "shown"), ("s3a://bucket/logs/shown", "shown"), ("shown/", "shown")])
def test_a_landed_folder_is_called_as_the_path_goes_on_from_the_data(path: str, folder: str) -> None:
    assert landed_folder(path) == folder
