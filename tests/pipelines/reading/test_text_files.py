from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from contracts.errors import ConfigError, DataError, SchemaError
from pipelines.reading import text_files
from pipelines.reading.text_files import CORRUPT, CSV_OPTIONS, csv_names, files_at, known_options, stage_csv


def staged(tmp_path: Path, text: str, names: list[str], **options: str) -> list[dict[str, str | None]]:
    tmp_path.mkdir(exist_ok=True)
    file = tmp_path / "log.csv"
    file.write_bytes(text.encode(options.get("encoding", "utf-8")))
    stage_csv([file], names, options, tmp_path / "rows", "log")
    rows: list[dict[str, str | None]] = pq.read_table(tmp_path / "rows").to_pylist()
    return rows


def test_fields_are_texts_and_an_empty_one_is_null(tmp_path: Path) -> None:
    rows = staged(tmp_path, 'a;b\n1;"x;y"\n;\n"";2\n', ["a", "b"], sep=";", header="true")
    assert [(row["a"], row["b"]) for row in rows] == [("1", "x;y"), (None, None), ("", "2")]
    assert {row[CORRUPT] for row in rows} == {None}


def test_fields_divided_by_more_than_one_character(tmp_path: Path) -> None:
    rows = staged(tmp_path, "a::b\n1::x:y\n::2\n3\n", ["a", "b"], sep="::", header="true")
    assert [(row["a"], row["b"]) for row in rows] == [("1", "x:y"), (None, "2"), (None, None)]
    assert csv_names(tmp_path / "log.csv", {"sep": "::", "header": "true"}) == ["a", "b"]


def test_records_of_another_number_of_fields_keep_their_text(tmp_path: Path) -> None:
    rows = staged(tmp_path, "1,2\n3\n4,5,6\n\n7,8\n", ["a", "b"])
    assert sorted(text for row in rows if (text := row[CORRUPT])) == ["3", "4,5,6"]
    assert [row["a"] for row in rows if row[CORRUPT] is None] == ["1", "7"]


def test_comments_and_other_encodings(tmp_path: Path) -> None:
    rows = staged(tmp_path, "|note\n|a,b\nÄ,1\n", ["a", "b"], comment="|", encoding="ISO-8859-1")
    assert [(row["a"], row["b"], row[CORRUPT]) for row in rows] == [("Ä", "1", None)]


@pytest.mark.parametrize("above", ["\n", " \n\r\n", "#made by x\n", "\ufeff#x\u2028y\n\n#\"z\n"])
@pytest.mark.parametrize("options", [{}, {"multiline": "true"}, {"escape": '"'}, {"encoding": "utf-16"}])
def test_the_header_is_the_first_line_that_is_neither_blank_nor_a_comment(
    tmp_path: Path, above: str, options: dict[str, str]
) -> None:
    rows = staged(tmp_path, above + "a,b\n\n1,2\n#3,4\n5,6\n", ["a", "b"], header="true", comment="#", **options)
    assert [(row["a"], row["b"], row[CORRUPT]) for row in rows] == [("1", "2", None), ("5", "6", None)]
    assert csv_names(tmp_path / "log.csv", {"header": "true", "comment": "#", **options}) == ["a", "b"]


def test_a_header_of_several_lines_is_one_where_values_may_be(tmp_path: Path) -> None:
    text = 'a,"b\nc"\n1,2\n'
    assert [row["a"] for row in staged(tmp_path, text, ["a", "b\nc"], header="true", multiline="true")] == ["1"]
    assert csv_names(tmp_path / "log.csv", {"header": "true", "multiline": "true"}) == ["a", "b\nc"]
    rows = staged(tmp_path / "of_one_line", text, ["a", "b"], header="true")
    assert [row["a"] or row[CORRUPT] for row in rows] == ["1", 'c"']


@pytest.mark.parametrize("text", ["#x", "#x\n\n", "a,b", "\na,b", "\na,b\n"])
def test_a_file_without_a_line_below_its_header_has_no_rows(tmp_path: Path, text: str) -> None:
    assert staged(tmp_path, text, ["a", "b"], header="true", comment="#", enforceschema="true") == []


@pytest.mark.parametrize("options", [{}, {"multiline": "true"}, {"escape": '"'}, {"encoding": "utf-16"}])
def test_a_quoted_value_that_begins_like_a_comment_is_a_value(tmp_path: Path, options: dict[str, str]) -> None:
    rows = staged(tmp_path, '"#a",1\n#"b,2\nc,"#d"\n', ["a", "b"], comment="#", **options)
    assert [(row["a"], row["b"]) for row in rows] == [("#a", "1"), ("c", "#d")]


def test_a_line_within_a_value_is_no_comment(tmp_path: Path) -> None:
    text = '1,"x\n#y\\"\n#z"\n#2,"q\n3,w\n'
    rows = staged(tmp_path, text, ["a", "b"], comment="#", multiline="true")
    assert [(row["a"], row["b"]) for row in rows] == [("1", 'x\n#y"\n#z'), ("3", "w")]


def test_a_compressed_file_is_read_and_an_empty_one_has_no_rows(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "log.csv.gz", "wt") as file:
        file.write("1\n2\n")
    (tmp_path / "empty.csv").write_text("")
    stage_csv(files_at(str(tmp_path), "log"), ["a"], {}, tmp_path / "rows", "log")
    assert pq.read_table(tmp_path / "rows").column("a").to_pylist() == ["1", "2"]


def test_a_header_in_another_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="CSV header does not conform to the schema: it says b, a; list"):
        staged(tmp_path, "b,a\n1,2\n", ["a", "b"], header="true")


def test_a_header_is_passed_over_where_the_schema_is_enforced(tmp_path: Path) -> None:
    rows = staged(tmp_path, "b ,c\n1,2\n", ["a", "b"], header="true", enforceschema="true")
    assert [row["a"] for row in rows] == ["1"]


def test_names_come_from_the_header_or_are_numbered(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("x,y\n1,2\n")
    assert csv_names(file, {"header": "true"}) == ["x", "y"]
    assert csv_names(file, {}) == ["_c0", "_c1"]


def test_files_of_a_folder_a_pattern_and_nothing(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "_hidden", ".crc"):
        (tmp_path / name).write_text("1\n")
    assert [file.name for file in files_at(str(tmp_path), "log")] == ["a.csv", "b.csv"]
    assert [file.name for file in files_at(str(tmp_path / "a*"), "log")] == ["a.csv"]
    (tmp_path / "_kept" / "_tmp").mkdir(parents=True)
    for name in ("_tmp/part.csv", "c.csv"):
        (tmp_path / "_kept" / name).write_text("1\n")
    assert [file.name for file in files_at(str(tmp_path), "log")] == ["a.csv", "b.csv"]
    assert [file.name for file in files_at(str(tmp_path / "_kept"), "log")] == ["c.csv"]
    with pytest.raises(DataError, match=r"log: nothing to read at .*nowhere"):
        files_at(str(tmp_path / "nowhere"), "log")


def test_an_option_that_would_not_be_followed_is_refused() -> None:
    assert known_options({"Sep": ";"}, CSV_OPTIONS, "log", "csv") == {"sep": ";"}
    with pytest.raises(ConfigError, match="knows no option 'unescapedQuoteHandling' of csv; leave it out"):
        known_options({"unescapedQuoteHandling": "x"}, CSV_OPTIONS, "log", "csv")
    with pytest.raises(ConfigError, match="mode must be PERMISSIVE"):
        known_options({"mode": "FAILFAST"}, CSV_OPTIONS, "log", "csv")


def test_a_quote_inside_quotes_is_doubled_where_it_is_the_escape(tmp_path: Path) -> None:
    text = '"x ""y"" z",1\n"w",2\n'
    assert [row["a"] for row in staged(tmp_path, text, ["a", "b"], escape='"')] == ['x "y" z', "w"]
    with pytest.raises(ConfigError, match=r"log\.csv: \"x \" doubles a quote .* options\.escape = '\"'"):
        staged(tmp_path / "other", text, ["a", "b"])


@pytest.mark.parametrize("options", [{}, {"escape": '"'}])
def test_a_field_of_several_lines_is_one_value(tmp_path: Path, options: dict[str, str]) -> None:
    rows = staged(tmp_path, '"x\ny",1\nw,2\n', ["a", "b"], multiline="true", **options)
    assert [(row["a"], row["b"], row[CORRUPT]) for row in rows] == [("x\ny", "1", None), ("w", "2", None)]


@pytest.mark.parametrize("end", ["", '5,"q\n'])  # nothing closes the quote, or another stray one does
@pytest.mark.parametrize("options", [{}, {"multiline": "true"}, {"multiline": "true", "escape": '"'}])
def test_a_quote_that_swallows_rows_is_named_with_its_line(tmp_path: Path, options: dict[str, str], end: str) -> None:
    text = "1,q\n" + '2,"q\n' + 40 * "3,q\n" + end + "4,q\n"
    with pytest.raises(DataError, match=r"log\.csv: line 2 \('2?,?\"q'\) opens a quote .* 4\d rows"):
        staged(tmp_path, text, ["a", "b"], **options)
    assert len(staged(tmp_path / "as_it_is", text, ["a", "b"], quote="\x01", **options)) == text.count("\n")


def test_a_quote_that_swallows_more_than_a_block_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "BLOCK", 1 << 12)
    text = 2_000 * "1,q\n" + '2,"q\n' + 60_000 * "3,q\n"
    with pytest.raises(DataError, match=r"log\.csv: line 2001 begins a record of more than .* double it"):
        staged(tmp_path, text, ["a", "b"], multiline="true", escape='"')


@pytest.mark.parametrize(("field", "value"), [
    (r"a\b", r"a\b"), (r"\"q\"", r"\"q\""), (r'"a\"b"', 'a"b'), (r'"a\nb"', r"a\nb"), (r'"a\\b"', r"a\b"),
    (r'"a\\"', "a\\"), (r'a"b\c"d', r'a"b\c"d'), (r'"C:\tmp"', r"C:\tmp"), (r"a\\b", r"a\\b"), (r'"a\,b"', r"a\,b"),
    ("\\", "\\"), ('""', ""),
])
def test_an_escape_is_one_inside_quotes_alone(tmp_path: Path, field: str, value: str) -> None:
    """The values are Apache Spark's (4.2)."""
    rows = staged(tmp_path, f"1,{field},x\n{field},2,y\n", ["a", "b", "c"])
    assert [(row["a"], row["b"], row["c"]) for row in rows] == [("1", value, "x"), (value, "2", "y")]


@pytest.mark.parametrize("place", [3, 300_000])  # in the first block, which is read at once, and in a later one
def test_bytes_of_another_encoding_are_refused_with_the_option_that_reads_them(place: int, tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    lines = [b"1,Rome and its seven hills\n"] * 400_000
    lines[place] = "2,Köln\n".encode("latin-1")
    file.write_bytes(b"".join(lines))
    with pytest.raises(DataError, match=r'log: .*log\.csv holds bytes that are no utf-8.*encoding = "ISO-8859-1"'):
        stage_csv([file], ["a", "b"], {}, tmp_path / "rows", "log")
    stage_csv([file], ["a", "b"], {"encoding": "ISO-8859-1"}, tmp_path / "latin", "log")
    assert "Köln" in pq.read_table(tmp_path / "latin", columns=["b"])["b"].to_pylist()
