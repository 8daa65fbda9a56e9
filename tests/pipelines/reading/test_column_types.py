from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.errors import DataError
from pipelines.reading import column_types

COLUMNS = [{"a": [1]}, {"a": ["x"], "b": [2]}, {"b": [3]}, {"a": [4], "b": [5]}]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"{number}.parquet" for number in range(len(COLUMNS))]
    for file, columns in zip(found, COLUMNS, strict=True):
        pq.write_table(pa.table(columns), file)
    return found


def test_no_group_has_a_column_as_two_types_and_the_one_with_the_newest_file_is_last(files: list[Path]) -> None:
    groups = column_types.groups(files[::-1], "log")
    assert sorted(file for group in groups for file in group) == files
    assert groups[-1] == [files[0], files[3]]
    for group in groups:
        assert len({column_types.types_of(file, "log").get("a") for file in group} - {None}) <= 1


def test_of_named_columns_each_group_has_all_alike(files: list[Path]) -> None:
    assert column_types.groups(files, "log", ["b"]) == [[files[0]], files[1:]]
    assert column_types.groups(files, "log", []) == [files]
    assert column_types.groups([], "log", ["a"]) == []


def test_a_damaged_one_is_named(files: list[Path]) -> None:
    files[2].write_bytes(b"PAR1")
    with pytest.raises(DataError, match=f"log: {files[2]} is damaged or cut short"):
        column_types.groups(files, "log")
