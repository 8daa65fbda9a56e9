from __future__ import annotations

import gzip
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.errors import DataError
from sluice.table_samples import table_sample
from sluice.table_samples.table_sample import partitions, read_sample


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


def test_parquet_is_told_by_its_content(tmp_path: Path) -> None:
    table = pa.table({"n": list(range(90)), "k": pa.array(["x", "y", "z"] * 30).dictionary_encode()})
    pq.write_table(table, tmp_path / "t.data", row_group_size=10)
    found = read_sample(tmp_path / "t.data")
    assert found.rows == 90
    assert found.columns["n"] == list(range(90))
    assert found.types == {"n": pa.int64(), "k": pa.string()}
    assert found.dialect is None


def thirds(numbers: Sequence[Any], rows: int) -> list[float]:
    """Shares of the sample that are of the table's beginning, middle and end, which holds its numbers in order."""
    assert list(map(int, numbers)) == sorted(set(map(int, numbers)))  # no row twice
    return [sum(low * rows <= int(number) < high * rows for number in numbers) / len(numbers)
            for low, high in ((0.0, 0.2), (0.3, 0.7), (0.8, 1.0))]


@pytest.mark.parametrize("group", [1_000_000, 70_000, 3_000])
def test_parquet_is_sampled_at_its_beginning_middle_and_end_however_it_is_cut(group: int, tmp_path: Path) -> None:
    """pyarrow and pandas write a million rows as one group."""
    rows = 300_000
    pq.write_table(pa.table({"n": range(rows), "k": ["x"] * rows}), tmp_path / "t.parquet", row_group_size=group)
    numbers = read_sample(tmp_path / "t.parquet").columns["n"]
    assert len(numbers) == pytest.approx(20_000, abs=3)
    assert thirds(numbers, rows) == pytest.approx([1 / 3] * 3, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [400_000, 900_000])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_text_is_sampled_at_its_beginning_middle_and_end_packed_or_not(name: str, rows: int, tmp_path: Path) -> None:
    content = b"n,k\n" + b"".join(b"%07d,x\n" % number for number in range(rows))
    (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
    found = read_sample(tmp_path / name)
    assert found.rows == pytest.approx(rows, rel=0.01)
    first, middle, last = thirds(found.columns["n"], rows)
    assert min(first, last) > 0.2
    assert middle > 0.2 or rows < 900_000
    assert int(found.columns["n"][-1]) > 0.99 * rows


def test_of_several_files_beginning_and_end_are_read(tmp_path: Path) -> None:
    rows = 200_000
    for part in range(2):
        numbers = range(part * rows, (part + 1) * rows)
        folder = tmp_path / "text"
        folder.mkdir(exist_ok=True)
        (folder / f"{part}.csv").write_text("n,k\n" + "".join(f"{number:07d},xxxxxx\n" for number in numbers))
        folder = tmp_path / "parquet"
        folder.mkdir(exist_ok=True)
        pq.write_table(pa.table({"n": numbers, "k": ["x"] * rows}), folder / f"{part}.parquet")
    for folder in (tmp_path / "text", tmp_path / "parquet"):
        seen = list(map(int, read_sample(folder).columns["n"]))
        assert seen == sorted(set(seen))
        assert seen[0] == 0
        assert seen[-1] > 0.99 * 2 * rows
        assert any(0.95 * rows < number < rows for number in seen)
        assert any(rows <= number < 1.05 * rows for number in seen)


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


def test_an_empty_folder_and_an_empty_parquet_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="folder without files"):
        read_sample(tmp_path)
    (tmp_path / "header.csv").write_text("user_id,item_id,click\n")
    with pytest.raises(DataError, match="no rows below its header"):
        read_sample(tmp_path / "header.csv")
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "e.parquet")
    with pytest.raises(DataError, match="has no rows"):
        read_sample(tmp_path / "e.parquet")


def test_what_is_no_table_is_left_out_of_a_folder_by_a_pattern(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("a,b\n1,x\n2,y\n")
    assert read_sample(tmp_path).pattern == ""
    assert read_sample(tmp_path, written=tmp_path / "made.toml").pattern == "*.csv"
    assert read_sample(tmp_path, written=tmp_path.parent / "made.toml").pattern == ""
    (tmp_path / "old.toml").write_text('name = "old"\n')
    found = read_sample(tmp_path)
    assert (found.pattern, found.columns["b"]) == ("*.csv", ["x", "y"] * 2)
    (tmp_path / "c.txt").write_text("a,b\n1,x\n2,y\n")
    with pytest.raises(DataError, match=r"old\.toml there is no part of it: put it elsewhere"):
        read_sample(tmp_path)


def folder(tmp_path: Path, **files: str) -> Path:
    (tmp_path / "log").mkdir()
    for name, text in files.items():
        (tmp_path / "log" / name.replace("__", ".")).write_text(text)
    return tmp_path / "log"


def test_of_a_folder_the_first_the_middle_and_the_last_file_are_seen(tmp_path: Path) -> None:
    files = {f"p{number}__csv": f"a,b\n{number},x\n{number},y\n" for number in range(7)}
    found = read_sample(folder(tmp_path, _SUCCESS="", p8__csv="", **files))
    assert found.columns["a"] == ["0", "0", "3", "3", "6", "6"]
    assert 12 <= found.rows <= 16  # of 14, by the bytes
    assert found.path.name == "log"


def test_a_folder_of_parquet_counts_all_rows_and_must_be_one_table(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    for number in range(5):
        pq.write_table(pa.table({"n": [number] * 10, "k": ["x"] * 10}), tmp_path / "log" / f"{number}.parquet")
    found = read_sample(tmp_path / "log")
    assert (found.rows, set(found.columns["n"])) == (50, {0, 2, 4})
    pq.write_table(pa.table({"n": [1], "other": ["x"]}), tmp_path / "log" / "9.parquet")
    with pytest.raises(DataError, match=r"9\.parquet has other columns \(n, other\) than 0\.parquet"):
        read_sample(tmp_path / "log")
    (tmp_path / "log" / "9.parquet").write_text("n,k\n1,x\n")
    with pytest.raises(DataError, match="of one format"):
        read_sample(tmp_path / "log")


def test_a_partitioned_folder_is_one_table_and_its_folders_are_named(tmp_path: Path) -> None:
    for number, country in enumerate(("de", "fr")):
        place = tmp_path / "log" / f"country={country}" / "day=2026-03-01"
        place.mkdir(parents=True)
        (place / "p.csv").write_text(f"a,b\n{number},2\n")
        (place / "_SUCCESS").touch()
    assert read_sample(tmp_path / "log").columns["a"] == ["0", "1"]
    assert partitions(tmp_path / "log") == ("country", "day")
    assert partitions(tmp_path / "log" / "country=de" / "day=2026-03-01") == ()
    assert partitions(place / "p.csv") == ()


def test_a_name_with_a_backtick_is_refused_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a`b,c\n" + "1,2\n" * 9)
    pq.write_table(pa.table({"a`b": [1], "c": [2]}), tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(DataError, match=r"the column a`b has a backtick .* rename it"):
            read_sample(tmp_path / name)


def test_names_that_differ_in_case_alone_are_one_to_spark(tmp_path: Path) -> None:
    pq.write_table(pa.table({"Price": [1], "price": [2]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="two columns named price"):
        read_sample(tmp_path / "t.parquet")
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["size", "size"])
    pq.write_table(twice, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="two columns named size"):
        read_sample(tmp_path / "t.parquet")


@pytest.mark.parametrize(("kind", "sentence"), [
    (pa.struct([("x", pa.float16())]), "when is of type halffloat.*write float32"),
])
def test_types_that_no_engine_reads_are_refused_with_the_cure(kind: pa.DataType, sentence: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"when": pa.nulls(3, kind), "b": ["x", "y", "z"]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=sentence):
        read_sample(tmp_path / "t.parquet")


def test_times_in_nanoseconds_are_shown_in_microseconds(tmp_path: Path) -> None:
    when = pa.array([1_704_103_200_123_456_789, None], pa.timestamp("ns"))
    pq.write_table(pa.table({"when": when, "b": ["x", "y"]}), tmp_path / "t.parquet")
    found = read_sample(tmp_path / "t.parquet")
    assert found.types["when"] == pa.timestamp("us")
    assert found.columns["when"] == [datetime.fromisoformat("2024-01-01T10:00:00.123456"), None]


def test_json_lines_are_a_table_with_types(tmp_path: Path) -> None:
    lines = ['{"id": 1, "name": "a", "price": 1.5, "tags": ["x"]}', '{"id": 2, "price": 2, "name": null}']
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress("\n".join(lines * 3).encode()))
    found = read_sample(tmp_path / "t.jsonl.gz")
    assert (found.format, found.rows) == ("json", 6)
    assert found.columns["tags"][:2] == [["x"], None]
    assert found.types == {"id": pa.int64(), "name": pa.string(), "price": pa.float64(), "tags": pa.list_(pa.string())}


def test_bytes_that_are_no_utf8_count_wherever_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_sample, "TEXT_BYTES", 1000)
    path = tmp_path / "t.csv"
    path.write_bytes(b"number,city\n" + b"1,Rome\n" * 2000 + "2,Köln\n".encode("latin-1"))
    dialect = read_sample(path).dialect
    assert dialect is not None
    assert dialect.encoding == "ISO-8859-1"


@pytest.mark.parametrize(("other", "names"), [
    ("name,age,city\na,2,b\n", "name, age, city"), ("u,x\n1,2\n", "u, x"), ("2,3,4\n", "2, 3, 4")])
def test_a_folder_of_text_must_be_one_table(other: str, names: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"b\.csv has other columns \({names}\) than a\.csv \(u, x, y\)"):
        read_sample(folder(tmp_path, a__csv="u,x,y\n1,2,3\n2,3,4\n", b__csv=other))


def test_a_folder_of_text_without_names_must_be_of_one_width(tmp_path: Path) -> None:
    log = folder(tmp_path, a__csv="1,2,3\n2,3,4\n", b__csv="5,6,7\n")
    assert read_sample(log).columns["c0"] == ["1", "2", "5"]
    (log / "c.csv").write_text("8,9\n")
    with pytest.raises(DataError, match=r"c\.csv has other columns \(c0, c1\) than a\.csv \(c0, c1, c2\)"):
        read_sample(log)


def test_what_lies_in_hidden_folders_is_no_part_of_the_table(tmp_path: Path) -> None:
    log = folder(tmp_path, a__csv="u,x\n1,2\n")
    for name in (".ipynb_checkpoints/b.csv", "_delta_log/0.json"):
        (log / name).parent.mkdir()
        (log / name).write_text('{"commit": {}, "x": 1}\n')
    assert read_sample(log).columns == {"u": ["1"], "x": ["2"]}


def test_a_part_of_a_partitioned_folder_is_a_table_and_one_with_folders_below_its_parts_is_none(tmp_path: Path) -> None:
    (tmp_path / "day=2024-01-01" / "sub").mkdir(parents=True)
    (tmp_path / "day=2024-01-01" / "sub" / "p.csv").write_text("a,b\n1,2\n")
    assert read_sample(tmp_path / "day=2024-01-01").columns["a"] == ["1"]
    with pytest.raises(DataError, match=r"partitioned by day, and day=2024-01-01/sub/p.csv is not"):
        read_sample(tmp_path)


def test_keys_of_json_that_differ_in_case_alone_are_one_to_spark(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"Id": 1, "id": 2}\n')
    with pytest.raises(DataError, match="two columns named id"):
        read_sample(tmp_path / "t.json")


@pytest.mark.parametrize(("content", "sentence"), [
    (gzip.compress(b"a,b\n1,2\n")[:10] + b"\xff" * 20, "invalid block type"),
    (b"a,b\n1,2\n", "Not a gzipped file"),
    (gzip.compress(b"a,b\n1,2\n")[:-4], "ended before"),
], ids=("damaged", "text", "cut off"))  # the packed bytes hold the time
def test_a_damaged_packed_file_is_refused_with_the_cause(content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(content)
    with pytest.raises(DataError, match=f"cannot read .*{sentence}"):
        read_sample(tmp_path / "t.csv.gz")
