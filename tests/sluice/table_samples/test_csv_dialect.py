from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contracts.config.log import Source
from contracts.errors import DataError
from pipelines.reading import sources
from sluice.table_samples.csv_dialect import sniff

ROWS = [["12", "red", "3.5"], ["40", "blue", "1"], ["7", "red", ""]]


def text(separator: str, header: bool = True) -> bytes:
    rows = [["age", "colour", "size"], *ROWS] if header else ROWS
    return ("\n".join(separator.join(row) for row in rows) + "\n").encode()


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", "::", "\x01", "^", "~"])
@pytest.mark.parametrize("header", [True, False])
def test_separator_and_header_are_told_from_the_lines(separator: str, header: bool) -> None:
    found = sniff(text(separator, header), Path("t.csv"))
    assert (found.separator, found.header) == (separator, header)
    assert found.names == (("age", "colour", "size") if header else ("c0", "c1", "c2"))
    assert found.rows(text(separator, header), first=True) == ROWS
    assert found.options(None).get("header") == ("true" if header else None)


def test_a_table_of_words_has_a_header_unless_its_first_row_recurs_below() -> None:
    assert sniff(b"shape,colour\nround,red\nflat,blue\nround,blue\n", Path("t")).header
    assert not sniff(b"round,red\nflat,blue\nround,red\n", Path("t")).header


def test_names_that_are_empty_or_given_twice_become_places_and_spark_is_told_not_to_compare() -> None:
    found = sniff(b",size,size\n1,2,3\n4,5,6\n", Path("t"))
    assert found.names == ("c0", "size", "c2")
    assert found.options(None)["enforceSchema"] == "true"


def test_a_last_column_without_a_name_and_values_leaves_the_header_a_header() -> None:
    found = sniff(b"size,colour,\n1,red,\n2,blue,\n", Path("t"))
    assert (found.header, found.names) == (True, ("size", "colour", "c2"))


def test_latin_padding_and_doubled_quotes_are_passed_on_to_the_reader() -> None:
    found = sniff('name, size\n"a ""b""", 1\nKöln, 2\nParis, 3\n'.encode("latin-1"), Path("t"))
    assert found.rows('x, 1\n"a ""b""", 2\n'.encode("latin-1"), first=False)[1][0] == 'a "b"'
    options = found.options("?")
    assert options["encoding"] == "ISO-8859-1"
    assert (options["escape"], options["nullValue"]) == ('"', "?")
    padded = sniff(b"1 , x \n2 , y \n3 , x \n", Path("t"))
    assert padded.options(None)["ignoreTrailingWhiteSpace"] == "true"
    assert sniff(b"1, x\n2, y\n3, x\n", Path("t")).options(None)["ignoreLeadingWhiteSpace"] == "true"


def test_a_cell_may_hold_a_line_break() -> None:
    found = sniff(b'text,size\n"a\nb",1\nc,2\n', Path("t"))
    assert found.options(None)["multiLine"] == "true"
    assert found.options(None)["escape"] == '"'  # further down a quote may be doubled
    assert "escape" not in sniff(b'text,size\n"a\nb",1\n"c\\"d\\"e",2\n', Path("t")).options(None)


def test_a_backslash_may_be_the_last_of_a_cell() -> None:
    plain = b'path,size\n' + b'"c:\\",1\n"d:\\",2\n' * 9
    assert sniff(plain, Path("t")).options(None)["escape"] == '"'
    assert sniff(plain, Path("t")).rows(plain, first=True)[0] == ["c:\\", "1"]


@pytest.mark.parametrize("cell", [r'"A \"big\" deal, 3"', r'"deal \"5\""', r'"5\", \"6\""', r'"\"a\""', r'"a\\"'])
def test_quotes_may_have_a_backslash_before_them(cell: str, spark: SparkSession, tmp_path: Path) -> None:
    lines = [f'{cell},{row},"",x\\N' if row % 3 else f'plain,{row},"y\\d","z"' for row in range(90)]
    table = "\n".join(["title,size,empty,last", *lines, '"say \\"no\\"",1,"",']).encode()
    found = sniff(table, Path("t"))
    assert (found.separator, "escape" in found.options(None)) == (",", False)
    said = cell[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    assert found.rows(table, first=True)[:2] == [["plain", "0", "y\\d", "z"], [said, "1", "", "x\\N"]]
    path = tmp_path / "t.csv"
    path.write_bytes(table)
    with ExitStack() as held:
        source = Source(path=str(path), format="csv", options=found.options(None))
        read = sources.read(spark, source, str(path), held).select(*found.names).collect()
    assert sorted([value or "" for value in row] for row in read) == sorted(found.rows(table, first=True))


@pytest.mark.parametrize(("cells", "doubled"), [
    ('"x","","y"', False), ('"", "" ,1', False), ('"x","a ""b""",1', True), ('"""x""",1', True),
    (r'"{""a"": ""b\""c""}",1', True)])
def test_quotes_are_doubled_within_cells_alone(cells: str, doubled: bool) -> None:
    found = sniff(f"{cells}\n".encode() * 20, Path("t"))
    assert found.doubled_quotes == doubled


def test_a_quote_that_is_not_closed_is_named_with_its_line() -> None:
    rows = 30 * "a,1,2\n"
    with pytest.raises(DataError, match=r"t\.csv: line 32 .*opens a quote .* 30 rows behind it .* remove the quote"):
        sniff(f'text,size,n\n{rows}b,"3,4\n{rows}'.encode(), Path("t.csv"))


@pytest.mark.parametrize("above", ["sep=;", "Report of sizes;;", "age;colour"])
def test_a_line_above_the_table_is_named_and_refused(above: str) -> None:
    with pytest.raises(DataError, match=f"its first line, '{above.split(';')[0]}.*remove it"):
        sniff(above.encode() + b"\n" + text(";") + 8 * text(";", header=False), Path("t.csv"))


def test_lines_end_where_the_engines_end_them() -> None:
    text = "name,size\na\u2028b,1\nc\x85d,2\n".encode()
    assert sniff(text, Path("t")).rows(text, first=True) == [["a\u2028b", "1"], ["c\x85d", "2"]]


@pytest.mark.parametrize("content", [b"alone\nin\nits\ncolumn\n", b"a,b\nc\nd,e,f\ng\n"])
def test_one_column_is_no_table(content: bytes) -> None:
    with pytest.raises(DataError, match="at least one field"):
        sniff(content, Path("t.csv"))


@pytest.mark.parametrize(("content", "names"), [
    (b"x1;x2;x3;label\n1,5;2,25;3,1;0\n2,5;3,25;4,1;1\n", ("x1", "x2", "x3", "label")),
    (b"x1;label\n1,5;0\n2,5;1\n", ("x1", "label")),
    (b"x1;x2\n1,5;0,5\n2,5;1,5\n", ("x1", "x2")),
    (b"1,5;2,25;0\n2,5;3,25;1\n", ("c0", "c1", "c2")),
    (b"1,5;1.002,25;3,1\n2,5;3,25;4,1\n", ("c0", "c1", "c2")),
])
def test_decimal_commas_do_not_part_columns(content: bytes, names: tuple[str, ...]) -> None:
    found = sniff(content, Path("t"))
    assert (found.separator, found.names) == (";", names)


@pytest.mark.parametrize("content", [b"id,tags,n\n1,a;b,2\n2,c;d,3\n", b"1,a;b,2\n2,c;d,3\n", b"x,1,a;b\ny,2,c\n"])
def test_semicolons_within_the_cells_of_a_table_with_commas_do_not_part_columns(content: bytes) -> None:
    assert sniff(content, Path("t")).separator == ","
