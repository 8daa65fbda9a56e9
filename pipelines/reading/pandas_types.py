"""Parquet files with times in nanoseconds or categories, as pandas writes them, are read from a plain copy: no engine
reads the former as they are, the embedded one not the latter, nor milliseconds within lists.

Apache Spark's, Hive's and Impala's INT96 is no such time, though Arrow calls it one: engines read it in place, as
instants in microseconds, which reach beyond the nanoseconds' year 2262."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.errors import DataError
from contracts.table_files import as_engines_read, is_hidden, of_other_types
from pipelines.engine.failures import first_line

ROWS = 1 << 17  # at a time


def files_to_copy(path: Path) -> list[Path]:
    """All files of the table where one of them has such columns, by its footer; none where none has. A file that is no
    Parquet does not count here: whoever reads it says so."""
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    files = [file for file in found if file.is_file() and not (file != path and is_hidden(file.relative_to(path)))]
    return files if any(_has_such_columns(file) for file in files) else []


def _has_such_columns(file: Path) -> bool:
    try:
        with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
            read, noted = opened.schema_arrow, _noted(opened.metadata)
            int96 = any(opened.schema.column(place).physical_type == "INT96" for place in range(len(opened.schema)))
    except (OSError, pa.ArrowException):
        return False
    if as_engines_read(read) != read or of_other_types(noted, _values) != noted:
        return True
    return int96 and of_other_types(noted, _unless_in_another_unit) != noted


def _noted(metadata: pq.FileMetaData) -> pa.Schema:
    """The columns as Arrow noted them in the file, by which the embedded engine goes, while Arrow itself restores only
    those categories that are texts; times may be noted in another unit than the file's. Empty where nothing is noted.
    """
    note = (metadata.metadata or {}).get(b"ARROW:schema")
    return pa.ipc.read_schema(pa.BufferReader(base64.b64decode(note))) if note else pa.schema([])


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _unless_in_another_unit(kind: pa.DataType) -> pa.DataType:
    """Null for the times which the embedded engine refuses, as it reads INT96 in the unit and the zone that are noted;
    nanoseconds without a zone are what it takes for no note."""
    readable = not pa.types.is_timestamp(kind) or kind.unit == "us" or (kind.unit == "ns" and kind.tz is None)
    return kind if readable else pa.null()


def stage_plain(files: Sequence[Path], path: Path, folder: Path, what: str) -> Path:
    """A copy below `folder` of the files of `path`, at the same places; returns what to read. Times are cut off at
    microseconds, categories become their values, INT96 times are in UTC.

    Raises DataError where a file cannot be read, or the copy not be written.
    """
    for file in files:
        copy = folder / (file.relative_to(path) if file != path else file.name)
        with _readable(file, what):
            schema = _schema_of_copy(file)
        with _writable(folder, what):
            copy.parent.mkdir(parents=True, exist_ok=True)
            with pq.ParquetWriter(copy, schema, compression="lz4") as writer:
                for part in _parts(file, schema, what):
                    writer.write_table(part)
    return folder


def _schema_of_copy(file: Path) -> pa.Schema:
    """Parquet has no times in seconds, so that INT96 read in seconds is told from all other times."""
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="s") as opened:
        return as_engines_read(of_other_types(opened.schema_arrow, _instants))


def _instants(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) and kind.unit == "s" else kind


def _parts(file: Path, schema: pa.Schema, what: str) -> Iterator[pa.Table]:
    with _readable(file, what), pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        for batch in opened.iter_batches(ROWS):
            yield pa.Table.from_batches([batch]).cast(schema, safe=False)


@contextmanager
def _readable(file: Path, what: str) -> Iterator[None]:
    """Arrow says of damaged pages, too, that they are an OSError, but without the system's number."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{what}: {file} cannot be read ({first_line(str(error))}); check the file's permissions "
                            "and its disk") from error
        raise DataError(f"{what}: {file} is damaged or cut short; copy or write this file again") from error


@contextmanager
def _writable(folder: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{what}: a plain copy of its files cannot be written to {folder} ({first_line(str(error))}); free space "
            "there, set TMPDIR to a folder with more, or write times in microseconds, no categories and no unsigned "
            "numbers"
        ) from error
