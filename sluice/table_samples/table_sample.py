"""A bounded sample of a table, a file or a folder of files: rows of beginning, middle and end, whatever its size."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import SEEK_END
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.errors import DataError
from contracts.table_files import as_engines_read, is_hidden
from sluice.table_samples.csv_dialect import Dialect, sniff
from sluice.table_samples.json_lines import json_columns

TEXT_BYTES, GROUPS, ROWS, WHOLE_BYTES = 1 << 20, 3, 20_000, 64 << 20
MOST_KEPT = 8  # pieces of a compressed file, of which one is from its middle
MAGIC, GZIP, UTF_16 = b"PAR1", b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")
NO_TABLES = (".toml", ".md", ".py", ".ipynb", ".html", ".zip", ".xml", ".yaml", ".pdf")
JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\{\s*[\"}]|\[\s*\{)")


class Bounds(NamedTuple):
    """What is read whole, and about how many rows are kept."""

    bytes: int
    rows: int


@dataclass(frozen=True)
class TableSample:
    """`columns` by name in the file's order, None for missing; `types` are Arrow's, or None throughout for text.

    `rows` is exact for Parquet and estimated from the bytes for text; `dialect` is that of CSV; `format` as Spark's
    readers are called; `pattern` of the folder's files that are the table, "" where all are.
    """

    path: Path
    columns: dict[str, list[Any]]
    types: dict[str, pa.DataType | None]
    rows: int
    dialect: Dialect | None
    format: str = "parquet"
    pattern: str = ""


def read_sample(path: Path, whole: bool = False, written: Path | None = None) -> TableSample:
    """Of a folder its first, middle and last file. `whole`: every row of a file of up to WHOLE_BYTES; `written`: what
    will be written beside, and is none of the table's files.

    Raises DataError when the table cannot be read, is of neither format, or has fewer than two columns."""
    try:
        files, pattern = _files(path, written)
        shown = [files[place] for place in sorted({0, len(files) // 2, len(files) - 1})]
        bounds = Bounds(WHOLE_BYTES, WHOLE_BYTES) if whole else Bounds(GROUPS * TEXT_BYTES, ROWS)
        parquet = {_is_parquet(file): file for file in shown}
        if len(parquet) > 1:
            raise DataError(f"{path} holds Parquet ({parquet[True].name}) and text ({parquet[False].name}); a log is "
                            "of one format: give one of its files, or move the others away")
        found = _parquet(path, files, shown, bounds.rows) if True in parquet else _text(path, files, shown, bounds)
        return replace(found, pattern=pattern)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is damaged Parquet: {str(error).splitlines()[0]}") from None


def _files(path: Path, written: Path | None) -> tuple[list[Path], str]:
    """The file, or those of a folder, hidden ones and marks such as _SUCCESS left out, as they are read later; and the
    pattern that leaves out what is no table, such as a configuration."""
    if not path.is_dir():
        return [path], ""
    there = sorted(file for file in path.rglob("*") if not is_hidden(file.relative_to(path)) and file.is_file())
    tables = [file for file in there if file.suffix.lower() not in NO_TABLES and file != written]
    files = [file for file in tables if file.stat().st_size]
    if not files:
        raise DataError(f"{path} is a folder without files of a table; give a CSV, JSON or Parquet file, or a folder "
                        "of them")
    _check_partitions(path, files)
    others = [file for file in there if file not in tables]
    if written is not None and path in written.parents:
        others.append(written)
    return files, _pattern(path, tables, others[0]) if others else ""


def partitions(path: Path) -> tuple[str, ...]:
    """Names that a folder's folders give (`day=2026-03-01`): columns whose type is the reader's matter."""
    files = (file.relative_to(path) for file in (sorted(path.rglob("*")) if path.is_dir() else ()) if file.is_file())
    return next((_names(file) for file in files if not is_hidden(file) and _names(file)), ())


def _names(file: Path) -> tuple[str, ...]:
    return tuple(part.partition("=")[0] for part in file.parts[:-1] if "=" in part)


def _check_partitions(path: Path, files: Sequence[Path]) -> None:
    """Raises DataError where some files lie in other folders than others do."""
    inside = [file.relative_to(path) for file in files]
    names = next((_names(file) for file in inside if _names(file)), ())
    odd = next((file for file in inside if len(file.parts) - 1 != len(names) or _names(file) != names), None)
    if names and odd is not None:
        raise DataError(f"{path} is partitioned by {' and '.join(names)}, and {odd} is not: put it elsewhere, "
                        "or into a folder as the others are")


def _pattern(path: Path, files: Sequence[Path], other: Path) -> str:
    """Of the files, without `other`. Raises DataError where none tells them apart."""
    endings = {"".join(file.suffixes[-2:]) if file.suffix == ".gz" else file.suffix for file in files}
    if len(endings) > 1 or "" in endings or any(file.parent != path for file in files):
        raise DataError(f"{path} is read as one table, and {other.name} there is no part of it: put it "
                        "elsewhere (--out says where the configuration goes), or give one of the folder's files")
    return f"*{endings.pop()}"


def _is_parquet(file: Path) -> bool:
    with file.open("rb") as opened:
        start = opened.read(4)
    if start[:2] == GZIP and not file.name.endswith(".gz"):
        raise DataError(f"{file} is compressed and not named so; call it {file.name}.gz, as Spark goes by the name")
    return start == MAGIC


def _parquet(path: Path, files: Sequence[Path], shown: Sequence[Path], most_rows: int) -> TableSample:
    opened = [pq.ParquetFile(file, coerce_int96_timestamp_unit="us") for file in shown]  # years to 9999
    _check_names(path, opened[0].schema_arrow.names)
    _check_types(path, opened[0].schema_arrow)
    _check_alike(shown, [file.schema_arrow.names for file in opened])
    parts = [part for file in opened for part in _rows_of(file, len(shown) == 1, most_rows)]
    try:
        table = pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowTypeError as error:
        raise DataError(f"{path}: its files have columns of different types: {str(error).splitlines()[0]}; write them "
                        "with one schema") from None
    if table.num_rows == 0:
        raise DataError(f"{path} has no rows")
    table = table.cast(as_engines_read(table.schema), safe=False)
    types = {field.name: field.type for field in table.schema}
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    return TableSample(path, table.to_pydict(), dict(types), rows, None)


def _check_names(path: Path, names: Sequence[str]) -> None:
    lower = [name.lower() for name in names]
    twice = next((name for place, name in enumerate(names) if name.lower() in lower[:place]), None)
    if twice is not None:
        raise DataError(f"{path} has two columns named {twice}, letter case apart; rename one")
    _check_backticks(path, names)


def _check_backticks(path: Path, names: Sequence[str]) -> None:
    odd = next((name for name in names if "`" in name), None)
    if odd is not None:
        raise DataError(f"{path}: the name of the column {odd} has a backtick in it, which stands around names in SQL "
                        "and not in them; rename it in the file")


def _check_alike(files: Sequence[Path], names: Sequence[Sequence[str]]) -> None:
    for file, others in zip(files, names, strict=True):
        if others != names[0]:
            raise DataError(f"{file} has other columns ({', '.join(others)}) than {files[0].name} "
                            f"({', '.join(names[0])}): a folder is one table; move one away")


def _check_types(path: Path, schema: pa.Schema) -> None:
    """Raises DataError on a column that keeps the engines from reading the whole file."""
    for field in schema:
        for kind in _parts(field.type):
            if pa.types.is_float16(kind):
                raise DataError(f"{path}: {field.name} is of type {kind}, which the engines do not read; write float32")


def _parts(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The type, and those within it."""
    yield kind
    if pa.types.is_nested(kind):
        for place in range(kind.num_fields):
            yield from _parts(kind.field(place).type)


def _rows_of(file: pq.ParquetFile, single: bool, most_rows: int) -> list[pa.Table]:
    """Of a single file beginning, middle and end; of one of several, beginning and end; all where it has no more."""
    total, most = file.metadata.num_rows, most_rows + 1 if single else most_rows // GROUPS + 1
    spans = [(0, total)] if total <= most else [
        (place, place + size) for size in [most // (GROUPS if single else GROUPS - 1)]
        for place in ((0, (total - size) // 2, total - size) if single else (0, total - size))]
    parts, start = list[pa.Table](), 0
    for place in range(file.num_row_groups):
        end = start + file.metadata.row_group(place).num_rows
        inside = [(max(first, start), min(last, end)) for first, last in spans if first < end and last > start]
        group = file.read_row_group(place) if inside else None
        parts += [group.take(pa.array(range(first - start, last - start))) if last - first < total else group
                  for first, last in inside if group is not None]  # a slice would keep all of its group
        start = end
    return parts or [file.read()]


def _text(path: Path, files: Sequence[Path], shown: Sequence[Path], bounds: Bounds) -> TableSample:
    read = [_pieces(file, bounds.bytes // len(shown)) for file in shown]
    pieces = [piece for of_file, _ in read for piece in of_file]
    if pieces[0][:2] in UTF_16:
        raise DataError(f"{path} is UTF-16; write it as UTF-8 (iconv -f UTF-16 -t UTF-8), which all engines read")
    if b"\0" in pieces[0]:
        raise DataError(f"{path} is neither text nor Parquet; convert it to one of them")
    unread = sum(file.stat().st_size for file in files if file not in shown)
    size = sum(size for _, size in read) + unread
    if JSON.match(pieces[0]):
        values, types, count = json_columns(pieces, path, bounds.rows)
        _check_names(path, list(values))
        return TableSample(path, values, dict(types), _estimate(count, pieces, size), None, "json")
    dialect = sniff(pieces[0], path, pieces)
    _check_backticks(path, dialect.names)
    _check_alike(shown, [dialect.first_names(of_file[0]) for of_file, _ in read])
    lines = [row for of_file, _ in read for number, piece in enumerate(of_file)
             for row in dialect.rows(piece, first=number == 0)]
    fitting = [row for row in lines if len(row) == len(dialect.names)]
    if not fitting:
        raise DataError(f"{path} has no rows below its header")
    stride = max(1, len(fitting) // bounds.rows)
    columns = {name: [row[place] for row in fitting[::stride]] for place, name in enumerate(dialect.names)}
    return TableSample(path, columns, dict.fromkeys(columns), _estimate(len(lines), pieces, size), dialect, "csv")


def _estimate(lines: int, pieces: Sequence[bytes], size: int) -> int:
    """Rows of `size` bytes, of which `pieces` hold so many lines; exact where they are all of it."""
    read = sum(map(len, pieces))
    return lines if read >= size else round(size * lines / read)


def _pieces(path: Path, most_bytes: int) -> tuple[list[bytes], int]:
    """Whole lines of the beginning, middle and end (one of several files: beginning and end), or all where there are no
    more, and the size in bytes when it is not compressed."""
    each = min(TEXT_BYTES, most_bytes // 2)
    with _opened(path) as file:
        start = file.read(most_bytes)
        if len(start) < most_bytes or most_bytes == WHOLE_BYTES:
            return [_whole_lines(start, len(start) == most_bytes)], len(start)
        rest, size = _rest_of_packed(file, each, start) if path.name.endswith(".gz") else _rest(file, each)
    if most_bytes < GROUPS * TEXT_BYTES:
        rest = rest[-1:]
    return [_whole_lines(start[:each], True), *(piece[piece.find(b"\n") + 1 :] for piece in rest)], size


def _opened(path: Path) -> IO[bytes]:
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty")
    return gzip.open(path, "rb") if path.name.endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def _rest(file: IO[bytes], each: int) -> tuple[list[bytes], int]:
    """So many bytes of the middle and of the end, and the size."""
    size, pieces = file.seek(0, SEEK_END), list[bytes]()
    for place in ((size - each) // 2, size - each):
        file.seek(place - 1)
        pieces.append(_whole_lines(file.read(each + 1), place < size - each))
    return pieces, size


def _rest_of_packed(file: IO[bytes], each: int, start: bytes) -> tuple[list[bytes], int]:
    """The same of a stream that can be read in its order alone: pieces are kept in equal distances, which grow."""
    kept, number, distance, last, size = list[bytes](), 0, 1, start[-each:], len(start)
    while piece := file.read(each):
        if number % distance == 0:
            kept.append(piece)
        if len(kept) > MOST_KEPT:
            kept, distance = kept[::2], 2 * distance
        last, number, size = (last + piece)[-each:], number + 1, size + len(piece)
    middle = [_whole_lines(kept[(len(kept) - 1) // 2], True)] if number > GROUPS else []  # else the end may have of it
    return [*middle, last], size


def _whole_lines(piece: bytes, cut: bool) -> bytes:
    return piece[: piece.rfind(b"\n") + 1] if cut and b"\n" in piece else piece
