"""What a column of a sample holds, and how Spark comes by it: numbers, keys, texts, times, lists."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from sluice.init.plain_names import plain_names, quoted, without_accents
from sluice.init.time_formats import time_expression
from sluice.table_samples.csv_dialect import MISSING
from sluice.table_samples.json_keys import json_keys
from sluice.table_samples.table_sample import TableSample

Type = Literal["integer", "number", "boolean", "text", "time", "list", "other"]
INTEGER, DECIMAL = re.compile(r"[+-]?\d+$"), re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
WHOLE = re.compile(r"[+-]?\d+(\.0*)?$")
MARKED = re.compile(r"[-+]?[$€£¥]? ?[-+]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)? ?[%€$£¥]?$")
MARKED_COMMA = re.compile(r"[-+]?[$€£¥]? ?[-+]?(\d{1,3}([. '\u00a0\u202f]\d{3})+|\d+)(,\d+)? ?[%€$£¥]?$")
LEADING_ZERO, SIGN = re.compile(r"[+-]?0\d"), re.compile(r"[.'%$€£¥]")
NO_DIGIT, NO_DIGIT_OR_COMMA, POINT = "[^0-9.+-]", "[^0-9,+-]", "[.]0*$"
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+$")
MOSTLY = 0.97  # share of the values that must be of a type for the column to be
LIST_SEPARATORS = ("|", ";", ",", " ")


class Reading(NamedTuple):
    """Of a text file: what stands for missing values, whether it has names, whether semicolons part its columns."""

    missing: str | None
    named: bool
    semicolons: bool


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
    inside: str | None = None  # the column of the file, where this is a part of it
    pointed: bool = False  # text of whole numbers, some of them as 78.0, which as keys are 78

    @property
    def key(self) -> str:
        """SQL of its values as keys."""
        read = self.expression or quoted(self.name)
        return f"regexp_replace({read}, '{POINT}', '')" if self.pointed else read

    @property
    def known(self) -> list[Any]:
        return [value for value in self.values if value is not None]

    @property
    def distinct(self) -> Counter[Any]:
        return Counter(str(value) if isinstance(value, list | dict) else value for value in self.known)


def typed_columns(sample: TableSample) -> list[Column]:
    """In the sample's order; texts become what at least MOSTLY of them are."""
    names = plain_names(list(sample.columns))
    reading = Reading(missing_mark(sample), bool(sample.dialect and sample.dialect.header),
                      bool(sample.dialect and sample.dialect.separator == ";"))
    found: list[Column] = []
    for name, plain in zip(sample.columns, names, strict=True):
        cells, kind = sample.columns[name], sample.types[name]
        parts = json_keys(cells) if kind is None or _is_string(kind) else {}
        if parts:
            taken = {other.lower() for other in names} | {column.plain.lower() for column in found}
            found += _of_json(name, plain, parts, taken)
        elif kind is None:
            found.append(_of_text(name, plain, cells, reading))
        else:
            found.append(_of_arrow(name, plain, cells, kind))
    return found


def missing(column: Column) -> str:
    """How many of the sample's rows have no value, in words; "" where all have one."""
    rows = len(column.values) - len(column.known)
    return f", {rows} row{'s' if rows > 1 else ''} ({rows / len(column.values):.2%}) without one" if rows else ""


def missing_mark(sample: TableSample) -> str | None:
    """The text that most often stands for a missing value in a text file; empty cells are missing anyway."""
    if sample.dialect is None:
        return None
    marks = Counter(cell for cells in sample.columns.values() for cell in cells if cell.strip() in MISSING[1:])
    return marks.most_common(1)[0][0].strip() if marks else None


def _of_json(name: str, plain: str, parts: Mapping[str, list[str]], taken: set[str]) -> Iterator[Column]:
    """A column for each key that most objects have: its value as text, as from_json reads it."""
    for key, cells in parts.items():
        wanted = re.sub(r"\W+", "_", f"{plain}_{without_accents(key)}", flags=re.ASCII)
        while wanted.lower() in taken:
            wanted += "_"
        taken.add(wanted.lower())
        raw = f"from_json({quoted(name)}, '{quoted(key)} STRING').{quoted(key)}"
        column = _of_text(f"{name}.{key}", wanted, cells, Reading(None, True, False), raw)
        yield dataclasses.replace(column, inside=name, why=f"{key} of JSON texts{column.why and ', ' + column.why}")


def _of_text(name: str, plain: str, cells: Sequence[str], reading: Reading, sql: str | None = None) -> Column:
    """`sql` reads the text where it is no column of its own."""
    raw = [None if cell.strip() in ("", reading.missing) else cell.strip() for cell in cells]
    known = [cell for cell in raw if cell is not None]
    column = Column(name, plain, "text", raw, sql or _copy(name, plain))
    time = time_expression(sql or quoted(name), plain, known, reading.named)
    if time is not None:
        return Column(name, plain, "time", raw, time.expression, why=time.why, moment=time.read, clock=time.clock)
    numbers = [cell for cell in known if DECIMAL.match(cell)]
    if known and len(numbers) >= MOSTLY * len(known):
        return _numeric(column, numbers)
    return _of_marked(column, known, reading.semicolons) or _list_of_text(column) or column


def _of_marked(column: Column, known: Sequence[str], semicolons: bool) -> Column | None:
    """Numbers with a decimal comma, a currency, a per cent sign or thousands. Commas with three digits behind each are
    thousands, unless semicolons part the columns, as they do where a comma is decimal. Digits with leading zeros are
    codes, and so may be groups of digits with nothing but blanks between them: texts, and none that could be cut into a
    list where all are written alike."""
    with_comma = [cell for cell in known if "," in cell]
    american = sum(bool(MARKED.match(cell)) for cell in known) >= MOSTLY * len(known)
    european = sum(bool(MARKED_COMMA.match(cell)) for cell in known) >= MOSTLY * len(known)
    if not known or not (american or european):
        return None
    grouped = semicolons and any(map(SIGN.search, known))
    if any(map(LEADING_ZERO.match, known)) or (semicolons and not (american or with_comma or grouped)):
        alike = len({re.sub(r"\d", "9", cell) for cell in known}) == 1
        return dataclasses.replace(column, why="digits written as codes are") if alike else None
    raw = column.expression or quoted(column.name)
    if european and ((with_comma and semicolons) or (not american and (with_comma or grouped))):
        read = f"regexp_replace({raw}, '{NO_DIGIT_OR_COMMA}', '')" if not all(map(_bare_comma, known)) else raw
        values = [float(re.sub(NO_DIGIT_OR_COMMA, "", cell).replace(",", ".")) if cell and MARKED_COMMA.match(cell)
                  else None for cell in column.values]
        return dataclasses.replace(column, type="number", values=values, why="numbers with a decimal comma",
                                   expression=f"try_cast(replace({read}, ',', '.') AS DOUBLE)")
    if not american:
        return None
    values = [float(re.sub(NO_DIGIT, "", cell)) if cell and MARKED.match(cell) else None for cell in column.values]
    return dataclasses.replace(column, type="number", values=values,
                               expression=f"try_cast(regexp_replace({raw}, '{NO_DIGIT}', '') AS DOUBLE)",
                               why="numbers with a currency, a per cent sign or thousands")


def _bare_comma(cell: str) -> bool:
    return bool(DECIMAL_COMMA.match(cell) or INTEGER.match(cell))


def _copy(name: str, plain: str) -> str | None:
    return None if name == plain else quoted(name)


def _numeric(column: Column, numbers: list[str]) -> Column:
    """Integers with leading zeros are codes, not numbers; what is no number among many counts as missing."""
    raw = column.expression or quoted(column.name)
    with_others, copied = len(numbers) < len(column.known), raw == quoted(column.name)
    if any(map(LEADING_ZERO.match, numbers)):
        return Column(column.name, column.plain, "text", column.values, column.expression,
                      why="digits with leading zeros")
    whole = all(WHOLE.match(cell) for cell in numbers)
    values = [None if cell is None or not DECIMAL.match(cell) else int(cell.split(".")[0]) if whole else float(cell)
              for cell in column.values]
    read = (column.expression if copied and not with_others
            else f"try_cast(regexp_replace({raw}, '{POINT}', '') AS BIGINT)" if whole else f"try_cast({raw} AS DOUBLE)")
    why = "numbers, a few other texts count as missing" if with_others else "whole numbers" if whole else "numbers"
    return Column(column.name, column.plain, "integer" if whole else "number", values, read, why=why,
                  pointed=whole and read == column.expression and any("." in cell for cell in numbers))


def _list_of_text(column: Column) -> Column | None:
    """Text that a separator cuts into few pieces which recur; [1, 2] and ['a', 'b'] lose their brackets first."""
    times = Counter(column.known)
    in_brackets = sum(count for cell, count in times.items() if cell[0] == "[" and cell[-1] == "]")
    brackets = in_brackets > MOSTLY * times.total()
    bare = {cell: re.sub(r"[\[\]'\" ]", "", cell) if brackets else cell for cell in times}
    for separator in ("," if brackets else LIST_SEPARATORS):
        lists = {cell: [piece for piece in bare[cell].split(separator) if piece] for cell in times}
        several = sum(times[cell] for cell, pieces in lists.items() if len(pieces) > 1)
        if several <= 0.3 * times.total():
            continue
        pieces = set(chain.from_iterable(lists.values()))
        written = sum(times[cell] * len(of_cell) for cell, of_cell in lists.items())
        if len(pieces) < 0.2 * written and len(pieces) < len(set(bare.values())):
            values = [None if cell is None else lists[cell] for cell in column.values]
            raw = column.expression or quoted(column.name)
            read = f"translate({raw}, '[]\"\\' ', '')" if brackets else column.expression
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
        time = _time_of_numbers(name, plain, values, quoted(name))
        if time is not None:
            return time
        return Column(name, plain, "integer", values, copy, why=f"type {kind}", is_text=False)
    if types.is_floating(kind) or types.is_decimal(kind):
        values = [None if value is None or math.isnan(value) else value for value in values]
        if _beyond_bigint(values, kind):
            texts = [None if value is None else str(value) for value in values]
            return Column(name, plain, "text", texts, f"CAST({quoted(name)} AS STRING)", why=f"type {kind}")
        if _whole(values, kind):
            read = f"try_cast({quoted(name)} AS BIGINT)"
            time = _time_of_numbers(name, plain, values, read)
            if time is not None:
                return time
            return Column(name, plain, "integer", [None if value is None else int(value) for value in values], read,
                          why=f"type {kind}, whole numbers", is_text=False)
        time = _time_of_numbers(name, plain, values, quoted(name), "{:f}".format)
        if time is not None:
            return time
        number = f"CAST({quoted(name)} AS DOUBLE)" if types.is_decimal(kind) else copy
        return Column(name, plain, "number", values, number, why=f"type {kind}", is_text=False)
    if _is_string(kind):
        return _of_text(name, plain, ["" if value is None else value for value in values], Reading(None, True, False))
    if (types.is_list(kind) or types.is_large_list(kind)) and kind is not None:
        if _without_fraction(kind.value_type):
            lists = [value and [part if part is None else str(part) for part in value] for value in values]
            read = f"CAST({quoted(name)} AS ARRAY<STRING>)"
            return Column(name, plain, "list", lists, read, why=f"type {kind}", is_text=False)
        inner = _plain_inner(kind.value_type)
        return Column(name, plain, "list" if inner else "other", values, copy, why=f"type {kind}", is_text=False)
    return Column(name, plain, "other", values, None, why=f"type {kind}", is_text=False)


def _time_of_numbers(
    name: str, plain: str, values: list[Any], read: str, write: Callable[[Any], str] = lambda value: str(int(value))
) -> Column | None:
    """`read` is SQL of the number, `write` its digits."""
    time = time_expression(read, plain, [write(value) for value in values if value is not None], True)
    if time is None:
        return None
    return Column(name, plain, "time", values, time.expression, why=time.why, is_text=False,
                  moment=lambda value: time.read(write(value)), clock=time.clock)


def _whole(values: list[Any], kind: pa.DataType | None) -> bool:
    """Numbers with a fraction by type alone, as data frames write whole ones with holes."""
    known, most = [value for value in values if value is not None], 2**63 if _without_fraction(kind) else 2**53
    return bool(known) and all(abs(value) < most and value == int(value) for value in known)


def _beyond_bigint(values: list[Any], kind: pa.DataType | None) -> bool:
    """Whether whole numbers are too large to be computed with, as hashes without a sign are."""
    return _without_fraction(kind) and any(value is not None and abs(value) >= 2**63 for value in values)


def _without_fraction(kind: pa.DataType | None) -> bool:
    return kind is not None and pa.types.is_decimal(kind) and kind.scale == 0


def _moment(value: Any) -> float | None:
    if not hasattr(value, "hour"):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()


def _is_string(kind: pa.DataType | None) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _plain_inner(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
