from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.errors import DataError
from sluice.init import table_sample
from sluice.init.table_sample import read_sample


def test_a_small_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n2,y\n\n3\n" + "4,z\n" * 9)
    found = read_sample(path)
    assert found.columns == {"a": ["1", "2", *"4" * 9], "b": ["x", "y", *"z" * 9]}  # a short row fits no column


def test_a_large_file_shows_beginning_middle_and_end_and_its_rows_are_estimated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_sample, "TEXT_BYTES", 1000)
    path = tmp_path / "t.csv"
    path.write_text("number,kind\n" + "".join(f"{row:06d},{'ab'[row % 2]}\n" for row in range(5000)))
    found = read_sample(path)
    numbers = [int(value) for value in found.columns["number"]]
    assert len(numbers) < 400
    assert (numbers[0], numbers[-1]) == (0, 4999)
    assert any(2000 < number < 3000 for number in numbers)
    assert found.rows == pytest.approx(5000, rel=0.02)


def test_a_packed_file_is_read_from_its_beginning_and_must_be_named_so(tmp_path: Path) -> None:
    content = gzip.compress(b"a,b\n1,x\n2,y\n")
    (tmp_path / "t.csv.gz").write_bytes(content)
    assert read_sample(tmp_path / "t.csv.gz").columns["b"] == ["x", "y"]
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(DataError, match=r"call it t\.csv\.gz"):
        read_sample(tmp_path / "t.csv")


def test_parquet_is_told_by_its_content_and_sampled_by_row_groups(tmp_path: Path) -> None:
    table = pa.table({"n": list(range(90)), "k": pa.array(["x", "y", "z"] * 30).dictionary_encode()})
    pq.write_table(table, tmp_path / "t.data", row_group_size=10)
    found = read_sample(tmp_path / "t.data")
    assert found.rows == 90
    assert found.columns["n"] == [*range(10), *range(40, 50), *range(80, 90)] or len(found.columns["n"]) == 30
    assert found.types == {"n": pa.int64(), "k": pa.string()}
    assert found.dialect is None


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("none.csv", None, "cannot read"),
        ("empty.csv", b"", "is empty"),
        ("picture.png", b"\x89PNG\0\0\0\0,\0\n", "neither text nor Parquet"),
        ("broken.parquet", b"PAR1 and nothing", "damaged Parquet"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(name: str, content: bytes, sentence: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=sentence):
        read_sample(tmp_path / name)


def test_a_folder_and_an_empty_parquet_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="give one of its files"):
        read_sample(tmp_path)
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "e.parquet")
    with pytest.raises(DataError, match="has no rows"):
        read_sample(tmp_path / "e.parquet")
