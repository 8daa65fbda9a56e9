from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from contracts.config.log import Source
from pipelines.reading import sources
from sluice.init.column_types import Column, missing_mark, typed_columns
from sluice.table_samples.table_sample import TableSample, read_sample


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def text_columns(tmp_path: Path, **cells: list[str]) -> dict[str, Column]:
    path = tmp_path / "t.csv"
    rows = zip(*cells.values(), strict=True)
    path.write_text("\n".join([";".join(cells), *(";".join(row) for row in rows)]) + "\n")
    return {one.name: one for one in typed_columns(read_sample(path))}


@pytest.mark.parametrize(
    ("cells", "kind", "expression"),
    [
        (["1", "20", "3"], "integer", None),
        (["1.5", "20", "-3e2"], "number", None),
        (["1,5", "20,25", "3,0"], "number", "try_cast(replace(it, ',', '.') AS DOUBLE)"),
        (["1.234,56", "12,00", "7"], "number",
         "try_cast(replace(regexp_replace(it, '[^0-9,+-]', ''), ',', '.') AS DOUBLE)"),
        (["12,50 €", "1.000,00 €", "3 €"], "number",
         "try_cast(replace(regexp_replace(it, '[^0-9,+-]', ''), ',', '.') AS DOUBLE)"),
        (["$5", "$1,234.50", "$7.25"], "number", "try_cast(regexp_replace(it, '[^0-9.+-]', '') AS DOUBLE)"),
        (["01234", "00501", "10001"], "text", None),
        (["red", "blue", "1"], "text", None),
        (["31/01/2026", "01/02/2026", "02/02/2026"], "time", "try_to_timestamp(it, 'd/M/yyyy')"),
    ],
)
def test_texts_are_told_apart(cells: list[str], kind: str, expression: str | None, tmp_path: Path) -> None:
    found = text_columns(tmp_path, it=cells, other=["a", "b", "c"])["it"]
    assert (found.type, found.expression) == (kind, expression)


def test_of_numbers_with_a_decimal_comma_whole_ones_are_numbers_too(tmp_path: Path) -> None:
    found = text_columns(tmp_path, it=["1,5", "20", "3"], other=["a", "b", "c"])["it"]
    assert found.values == [1.5, 20.0, 3.0]


def test_commas_before_three_digits_are_thousands_where_commas_part_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('it,other\n"1,234",a\n999,b\n"12,345",c\n')
    found = typed_columns(read_sample(path))[0]
    assert found.values == [1234.0, 999.0, 12345.0]


def test_keys_of_json_texts_are_columns_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('ctx,other\n' + '"{""os"": ""ios"", ""age"": 3}",a\n"{""os"": ""web"", ""age"": 41}",b\n' * 4)
    os, age, other = typed_columns(read_sample(path))
    assert [(one.name, one.plain, one.inside, one.type) for one in (os, age, other)] == [
        ("ctx.os", "ctx_os", "ctx", "text"), ("ctx.age", "ctx_age", "ctx", "integer"), ("other", "other", None, "text")]
    assert os.expression == "from_json(ctx, 'os STRING').os"
    assert age.expression == "try_cast(regexp_replace(from_json(ctx, 'age STRING').age, '[.]0*$', '') AS BIGINT)"


def test_whole_floats_of_parquet_may_be_times(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1767600000.0, None, 1767700000.0], "b": ["x", "y", "z"]}), tmp_path / "t.parquet")
    found = typed_columns(read_sample(tmp_path / "t.parquet"))[0]
    assert (found.type, found.expression) == ("time", "timestamp_seconds(try_cast(try_cast(ts AS BIGINT) AS BIGINT))")
    assert found.moment is not None
    assert found.moment(found.values[0]) == 1767600000


def test_floats_of_parquet_may_be_times_with_a_fraction(spark: SparkSession, tmp_path: Path) -> None:
    moments = [1767600000.25, None, 1767700000.5]
    table = pa.table({"ts": moments, "price": moments, "b": ["x", "y", "z"]})
    pq.write_table(table, tmp_path / "t.parquet")
    found, price, _ = typed_columns(read_sample(tmp_path / "t.parquet"))
    assert (found.type, found.clock, price.type) == ("time", True, "number")
    assert found.moment is not None
    assert found.moment(found.values[0]) == 1767600000.25
    read = spark.read.parquet(str(tmp_path / "t.parquet")).selectExpr(f"unix_millis({found.expression}) AS ms")
    assert [row.ms for row in read.collect()] == [1767600000250, None, 1767700000500]


def test_a_few_words_among_numbers_count_as_missing(tmp_path: Path) -> None:
    cells = [str(number) for number in range(99)] + ["unknown"]
    found = text_columns(tmp_path, it=cells, other=["a"] * 100)["it"]
    assert found.type == "integer"
    assert found.values[-1] is None
    assert found.expression == "try_cast(regexp_replace(it, '[.]0*$', '') AS BIGINT)"


def test_whole_numbers_with_a_point_are_as_keys_those_without(tmp_path: Path, spark: SparkSession) -> None:
    """As a table is written whose column of ids had holes; ids beyond 2^53 keep their digits."""
    cells = ["78.0", "5", "9007199254740993.0", "-3.", "12.00", "1.50"]
    found = text_columns(tmp_path, it=cells[:5], plain=["7"] * 5)
    assert found["it"].values == [78, 5, 9007199254740993, -3, 12]
    assert (found["it"].expression, found["plain"].key) == (None, "plain")
    read = spark.createDataFrame([(cell,) for cell in cells], "it STRING").selectExpr(f"{found['it'].key} AS it")
    assert [row.it for row in read.collect()] == ["78", "5", "9007199254740993", "-3", "12", "1.50"]


def test_the_mark_of_what_is_missing_is_found_and_empties_are_missing_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,?\n?,x\n3,\n")
    sample = read_sample(path)
    assert missing_mark(sample) == "?"
    assert [one.values for one in typed_columns(sample)] == [[1, None, 3], [None, "x", None]]


@pytest.mark.parametrize(
    ("cells", "separator"), [(["a|b", "b|c|a", "c", "a|c"], "|"), (["[1, 2]", "[2]", "[3, 1]", "[3]"], ",")]
)
def test_texts_with_pieces_that_recur_are_lists(cells: list[str], separator: str, tmp_path: Path) -> None:
    found = text_columns(tmp_path, it=cells * 12, other=["x", "y", "z"] * 4 * len(cells))["it"]
    assert (found.type, found.separator) == ("list", separator)
    assert [len(value) for value in found.values[:3]] == [cell.count(separator) + 1 for cell in cells[:3]]
    assert (found.expression is not None) == (cells[0][0] == "[")


def test_letters_lose_their_accents(tmp_path: Path) -> None:
    found = text_columns(tmp_path, Kündigt=["x"], Straße=["x"], 年=["x"])
    assert [one.plain for one in found.values()] == ["Kundigt", "Strasse", "column"]


def test_names_become_plain_and_stay_different(tmp_path: Path) -> None:
    columns: dict[str, list[str]] = {"a.b": ["x"], "a b": ["x"], "day": ["x"], "_id": ["x"], "2nd": ["x"]}
    found = text_columns(tmp_path, **columns)
    assert [one.plain for one in found.values()] == ["a_b", "a_b_", "day_", "id", "c_2nd"]
    assert all(one.expression is not None for one in found.values())


@pytest.mark.parametrize("name", ["table", "NOT", "all", "true", "null", "current_date", "select", "order", "case"])
def test_a_column_that_is_called_as_sql_is_can_be_read(name: str, spark: SparkSession, tmp_path: Path) -> None:
    columns = {name: ["$1", "$20", "$3"], "other": ["a", "b", "c"]}
    found = text_columns(tmp_path, **columns)[name]
    assert found.expression is not None
    row = spark.createDataFrame([("$5",)], f"`{name}` string").selectExpr(f"{found.expression} AS `{found.plain}`")
    assert row.selectExpr(f"{found.plain} + 1 AS n").collect()[0].n == 6.0


@pytest.mark.parametrize(("most", "kind", "expression"), [
    (2**64 - 1, "text", "CAST(it AS STRING)"), (2**63 - 1, "integer", "try_cast(it AS BIGINT)")])
def test_unsigned_numbers_are_text_where_they_are_too_large(
    most: int, kind: str, expression: str, spark: SparkSession, held: ExitStack, tmp_path: Path
) -> None:
    values, path = [most, None, 7], tmp_path / "t.parquet"
    table = pa.table({"it": pa.array(values, pa.uint64()), "all": pa.array([values] * 3, pa.list_(pa.uint64()))})
    pq.write_table(table, path)
    found, several = typed_columns(read_sample(path))
    texts = [None if value is None else str(value) for value in values]
    assert (found.type, found.expression) == (kind, expression)
    assert found.values == (texts if kind == "text" else values)
    assert (several.type, several.values[0]) == ("list", texts)
    read = sources.read(spark, Source(path=str(path)), str(path), held)
    rows = read.selectExpr(f"{found.expression} AS it", f"{several.expression} AS several").collect()
    assert [row["it"] for row in rows] == found.values
    assert rows[0].several == texts


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1, 2]), "integer"),
        (pa.array([1.5, None]), "number"),
        (pa.array([Decimal("1.5"), None]), "number"),
        (pa.array([True, None]), "boolean"),
        (pa.array([0, 1], pa.timestamp("us")), "time"),
        (pa.array([1, 2], pa.date32()), "time"),
        (pa.array(["a", None]), "text"),
        (pa.array([["a"], []]), "list"),
        (pa.array([[0.5], []]), "other"),
        (pa.array([{"x": 1}, None]), "other"),
        (pa.array([b"1", None]), "other"),
    ],
)
def test_parquets_own_types_are_kept(values: Any, kind: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"it": values}), tmp_path / "t.parquet")
    sample: TableSample = read_sample(tmp_path / "t.parquet")
    assert typed_columns(sample)[0].type == kind


@pytest.mark.parametrize("cells", [
    ["005 520 135", "552 100 554", "780 129 987"], ["030 123 456", "040 123 456", "089 123 456"],
    ["552 100 554", "780 129 987", "1 200 300"], ["01,5", "2,5", "3,5"],
])
def test_codes_in_groups_of_digits_stay_text(cells: list[str], tmp_path: Path) -> None:
    found = text_columns(tmp_path, it=cells, other=["a", "b", "c"])["it"]
    assert (found.type, found.values) == ("text", cells)


@pytest.mark.parametrize("cells", [["1.234.567", "2.000", "7"], ["1 234 €", "20 €", "7 €"], ["1'234", "20", "7"]])
def test_thousands_without_a_decimal_comma_are_numbers_where_a_sign_says_so(cells: list[str], tmp_path: Path) -> None:
    assert text_columns(tmp_path, it=cells, other=["a", "b", "c"])["it"].type == "number"


def test_codes_in_groups_that_recur_are_no_lists(tmp_path: Path) -> None:
    cells = [f"{row % 7 + 100} {row % 11 + 200} {row % 13 + 300}" for row in range(500)]
    assert text_columns(tmp_path, it=cells, other=["a"] * 500)["it"].type == "text"


def test_whole_floats_that_are_no_number_are_read_as_missing(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"n": [3.0, float("nan"), None], "b": ["x", "y", "z"]})
    pq.write_table(table, tmp_path / "t.parquet")
    found = typed_columns(read_sample(tmp_path / "t.parquet"))[0]
    assert found.expression is not None
    rows = spark.read.parquet(str(tmp_path / "t.parquet")).selectExpr(f"{found.expression} AS n").collect()
    assert (found.type, found.values, [row["n"] for row in rows]) == ("integer", [3, None, None], [3, None, None])
