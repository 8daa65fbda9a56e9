"""JSON lines for the embedded engine: read once into Parquet, a record that does not fit marked with its own text.

A record fits when its line is an object and every value has its column's type: a whole number, a number, true or false,
text (of any other value, its JSON), a time as text that a cast reads, or what Arrow makes of a nested value. Without a
schema the columns are what the objects hold, in alphabetical order; a key of several types is text.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from contracts.table_files import json_object
from pipelines.reading.text_files import CORRUPT, not_encoded

ROWS = 50_000
TIMES = (T.DateType, T.TimestampType, T.TimestampNTZType)
_MISFIT = object()


def inferred(files: Sequence[Path], encoding: str) -> T.StructType:
    """The schema of all objects."""
    found: dict[str, pa.DataType] = {}
    for lines in _batches(files, encoding):
        for record in filter(None, map(json_object, lines)):
            for key, value in record.items():
                if value is not None:
                    kind = _kind(value)
                    found[key] = _merged(found.get(key, kind), kind)
                else:
                    found.setdefault(key, pa.null())
    plain = {key: pa.string() if pa.types.is_null(kind) else kind for key, kind in found.items()}
    return T.StructType([T.StructField(key, from_arrow_type(plain[key])) for key in sorted(plain)])


def stage_json(files: Sequence[Path], schema: T.StructType, encoding: str, folder: Path) -> None:
    """Writes `folder` with the columns of `schema` (times as texts) and CORRUPT."""
    folder.mkdir(parents=True)
    arrow = pa.schema([(field.name, pa.string() if isinstance(field.dataType, TIMES) else to_arrow_type(field.dataType))
                       for field in schema] + [(CORRUPT, pa.string())])
    with pq.ParquetWriter(folder / "part-00000.parquet", arrow, compression="lz4") as writer:
        for lines in _batches(files, encoding):
            writer.write_table(pa.Table.from_pylist([_row(line, schema) for line in lines], schema=arrow))


def _batches(files: Sequence[Path], encoding: str) -> Iterator[list[str]]:
    marked = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    for file in files:
        with pa.input_stream(str(file), compression="detect") as stream:
            text = io.TextIOWrapper(io.BufferedReader(stream), encoding=marked, newline="\n")
            lines = (line for raw in text if (line := raw.rstrip("\r\n")).strip())
            try:
                while batch := list(islice(lines, ROWS)):
                    yield batch
            except UnicodeDecodeError:
                raise not_encoded("the table", file, encoding) from None


def _row(line: str, schema: T.StructType) -> dict[str, Any]:
    record = json_object(line)
    values = {} if record is None else {field.name: _value(record.get(field.name), field.dataType) for field in schema}
    misfit = record is None or _MISFIT in values.values()
    return {name: None if value is _MISFIT else value for name, value in values.items()} | {
        CORRUPT: line if misfit else None
    }


def _value(value: Any, kind: T.DataType) -> Any:
    if value is None:
        return None
    if isinstance(kind, T.StringType):
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(kind, TIMES):
        return value if isinstance(value, str) else _MISFIT
    fits: Mapping[type[T.DataType], tuple[type, ...]] = {
        T.BooleanType: (bool,), T.ByteType: (int,), T.ShortType: (int,), T.IntegerType: (int,), T.LongType: (int,),
        T.FloatType: (int, float), T.DoubleType: (int, float),
    }
    allowed = fits.get(type(kind))
    if allowed and (not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed)):
        return _MISFIT
    return value if _holds(value, to_arrow_type(kind)) else _MISFIT


def _holds(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.scalar(value, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False
    return True


def _kind(value: Any) -> pa.DataType:
    try:
        return pa.scalar(value).type
    except (pa.ArrowException, OverflowError):
        return pa.string()


def _merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    try:
        schemas = [pa.schema([("x", kind)]) for kind in (one, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").field("x").type
    except pa.ArrowException:
        return pa.string()
