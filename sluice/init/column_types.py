"""What a column of a sample holds, and how Spark comes by it: numbers, keys, texts, times, lists."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Literal

import pyarrow as pa

from sluice.init.csv_dialect import MISSING
from sluice.init.table_sample import TableSample
from sluice.init.time_formats import time_expression

Type = Literal["integer", "number", "boolean", "text", "time", "list", "other"]
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*$")
INTEGER, DECIMAL = re.compile(r"[+-]?\d+$"), re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
WHOLE = re.compile(r"[+-]?\d+(\.0*)?$")
MARKED = re.compile(r"[-+]?[$€£¥]? ?[-+]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)? ?[%€$£¥]?$")
NO_DIGIT = "[^0-9.+-]"
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+$")
RESERVED = ("day",)
MOSTLY = 0.97  # share of the values that must be of a type for the column to be
LIST_SEPARATORS = ("|", ";", ",", " ")


@dataclass(frozen=True)
class Column:
    """`name` in the file, `plain` as a field may be called; values typed, None for missing.

    expression  Spark SQL that makes the plain column of the raw one; None: take it as it is
    separator   of a list that is text
    is_text     a file of text, or texts in Parquet: a number or a key is read out of it
    why         what was seen, in words
    """

    name: str
    plain: str
    type: Type
    values: list[Any]
    expression: str | None = None
    separator: str | None = None
    why: str = ""
    is_text: bool = True  # in the file
    moment: Callable[[str], float | None] | None = None  # seconds since 1970 of a value, of a time
    clock: bool = False  # a time that tells hours

    @property
    def known(self) -> list[Any]:
        return [value for value in self.values if value is not None]

    @property
    def distinct(self) -> Counter[Any]:
        return Counter(str(value) if isinstance(value, list | dict) else value for value in self.known)


def typed_columns(sample: TableSample) -> list[Column]:
    """In the sample's order; texts become what at least MOSTLY of them are."""
    names = _plain_names(list(sample.columns))
    missing = missing_mark(sample)
    return [
        _of_text(name, plain, sample.columns[name], missing, named=bool(sample.dialect and sample.dialect.header))
        if sample.types[name] is None else _of_arrow(name, plain, sample.columns[name], sample.types[name])
        for name, plain in zip(sample.columns, names, strict=True)
    ]


def missing_mark(sample: TableSample) -> str | None:
    """The text that most often stands for a missing value in a text file; empty cells are missing anyway."""
    if sample.dialect is None:
        return None
    marks = Counter(cell for cells in sample.columns.values() for cell in cells if cell.strip() in MISSING[1:])
    return marks.most_common(1)[0][0].strip() if marks else None


def quoted(name: str) -> str:
    """As Spark SQL names a column."""
    return name if PLAIN.match(name) else f"`{name.replace('`', '``')}`"


def _plain_names(names: list[str]) -> list[str]:
    plain_names: list[str] = []
    for name in names:
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "column"
        plain = plain if plain[0].isalpha() else f"c_{plain}"
        plain = f"{plain}_" if plain.lower() in RESERVED else plain
        while plain.lower() in {other.lower() for other in plain_names}:
            plain += "_"
        plain_names.append(plain)
    return plain_names


def _of_text(name: str, plain: str, cells: list[str], missing: str | None, named: bool) -> Column:
    raw = [None if cell.strip() in ("", missing) else cell.strip() for cell in cells]
    known = [cell for cell in raw if cell is not None]
    column = Column(name, plain, "text", raw, _copy(name, plain))
    time = time_expression(quoted(name), plain, known, named)
    if time is not None:
        return Column(name, plain, "time", raw, time.expression, why=time.why, moment=time.read, clock=time.clock)
    numbers = [cell for cell in known if DECIMAL.match(cell)]
    if known and len(numbers) >= MOSTLY * len(known):
        return _numeric(column, numbers)
    commas = sum(bool(DECIMAL_COMMA.match(cell) or INTEGER.match(cell)) for cell in known)
    if known and commas >= MOSTLY * len(known):
        values = [float(c.replace(",", ".")) if c and DECIMAL_COMMA.match(c) else None for c in raw]
        read = f"try_cast(replace({quoted(name)}, ',', '.') AS DOUBLE)"
        return Column(name, plain, "number", values, read, why="numbers with a decimal comma")
    marked = [cell for cell in known if MARKED.match(cell) and not DECIMAL.match(cell)]
    if known and len(marked) >= MOSTLY * len(known):
        values = [float(re.sub(NO_DIGIT, "", cell)) if cell and MARKED.match(cell) else None for cell in raw]
        read = f"try_cast(regexp_replace({quoted(name)}, '{NO_DIGIT}', '') AS DOUBLE)"
        return Column(name, plain, "number", values, read, why="numbers with a currency, a per cent sign or thousands")
    return _list_of_text(column) or column


def _copy(name: str, plain: str) -> str | None:
    return None if name == plain else quoted(name)


def _numeric(column: Column, numbers: list[str]) -> Column:
    """Integers with leading zeros are codes, not numbers; what is no number among many counts as missing."""
    with_others = len(numbers) < len(column.known)
    if any(re.match(r"[+-]?0\d", cell) for cell in numbers):
        return Column(column.name, column.plain, "text", column.values, column.expression,
                      why="digits with leading zeros")
    whole = all(WHOLE.match(cell) for cell in numbers)
    values = [None if cell is None or not DECIMAL.match(cell) else int(cell.split(".")[0]) if whole else float(cell)
              for cell in column.values]
    number = f"try_cast({quoted(column.name)} AS DOUBLE)"
    read = column.expression if not with_others else f"try_cast({number} AS BIGINT)" if whole else number
    why = "numbers, a few other texts count as missing" if with_others else "whole numbers" if whole else "numbers"
    return Column(column.name, column.plain, "integer" if whole else "number", values, read, why=why)


def _list_of_text(column: Column) -> Column | None:
    """Text that a separator cuts into few pieces which recur; [1, 2] and ['a', 'b'] lose their brackets first."""
    known = column.known
    brackets = sum(cell[0] == "[" and cell[-1] == "]" for cell in known) > MOSTLY * len(known) if known else False
    bare = [re.sub(r"[\[\]'\" ]", "", cell) for cell in known] if brackets else known
    for separator in ("," if brackets else LIST_SEPARATORS):
        lists = [[piece for piece in cell.split(separator) if piece] for cell in bare]
        several = sum(len(pieces) > 1 for pieces in lists)
        pieces = Counter(chain.from_iterable(lists))
        if several > 0.3 * len(lists) and len(pieces) < 0.2 * sum(pieces.values()) and len(pieces) < len(set(bare)):
            rest = iter(lists)
            values = [None if cell is None else next(rest) for cell in column.values]
            read = f"translate({quoted(column.name)}, '[]\"\\' ', '')" if brackets else column.expression
            return Column(column.name, column.plain, "list", values, read, separator,
                          f"texts that {separator!r} cuts into {len(pieces)} values which recur")
    return None


def _of_arrow(name: str, plain: str, values: list[Any], kind: pa.DataType | None) -> Column:
    types = pa.types
    copy = _copy(name, plain)
    if types.is_timestamp(kind) or types.is_date(kind):
        read = f"CAST({quoted(name)} AS TIMESTAMP)"
        return Column(name, plain, "time", values, read, why=f"type {kind}", is_text=False, moment=_moment,
                      clock=types.is_timestamp(kind))
    if types.is_boolean(kind):
        return Column(name, plain, "boolean", values, copy, why=f"type {kind}", is_text=False)
    if types.is_integer(kind):
        time = time_expression(quoted(name), plain, [str(value) for value in values if value is not None], True)
        if time is not None:
            return Column(name, plain, "time", values, time.expression, why=time.why, is_text=False,
                          moment=lambda value: time.read(str(value)), clock=time.clock)
        return Column(name, plain, "integer", values, copy, why=f"type {kind}", is_text=False)
    if types.is_floating(kind) or types.is_decimal(kind):
        values = [None if value is None or math.isnan(value) else value for value in values]
        if _whole(values):
            read = f"CAST({quoted(name)} AS BIGINT)"
            return Column(name, plain, "integer", [None if value is None else int(value) for value in values], read,
                          why=f"type {kind}, whole numbers", is_text=False)
        number = f"CAST({quoted(name)} AS DOUBLE)" if types.is_decimal(kind) else copy
        return Column(name, plain, "number", values, number, why=f"type {kind}", is_text=False)
    if types.is_string(kind) or types.is_large_string(kind):
        text = _of_text(name, plain, ["" if value is None else value for value in values], None, True)
        return dataclasses.replace(text, name=name, plain=plain)
    if (types.is_list(kind) or types.is_large_list(kind)) and kind is not None:
        inner = _plain_inner(kind.value_type)
        return Column(name, plain, "list" if inner else "other", values, copy, why=f"type {kind}", is_text=False)
    return Column(name, plain, "other", values, None, why=f"type {kind}", is_text=False)


def _whole(values: list[Any]) -> bool:
    """Numbers with a fraction by type alone, as data frames write whole ones with holes."""
    known = [value for value in values if value is not None]
    return bool(known) and all(abs(value) < 2**53 and value == int(value) for value in known)


def _moment(value: Any) -> float | None:
    if not hasattr(value, "hour"):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()


def _plain_inner(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
