"""A bounded sample of a CSV or Parquet file: rows of its beginning, its middle and its end, whatever its size."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.errors import DataError
from sluice.init.csv_dialect import Dialect, sniff

TEXT_BYTES, GROUPS, ROWS, WHOLE_BYTES = 1 << 20, 3, 20_000, 64 << 20
MAGIC, GZIP, UTF_16 = b"PAR1", b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")


class Bounds(NamedTuple):
    """What is read whole, and about how many rows are kept."""

    bytes: int
    rows: int


@dataclass(frozen=True)
class TableSample:
    """`columns` by name in the file's order, None for missing; `types` are Arrow's, or None throughout for text.

    `rows` is exact for Parquet and estimated from the bytes for text; `dialect` is None for Parquet.
    """

    path: Path
    columns: dict[str, list[Any]]
    types: dict[str, pa.DataType | None]
    rows: int
    dialect: Dialect | None


def read_sample(path: Path, whole: bool = False) -> TableSample:
    """`whole`: every row of a file of up to WHOLE_BYTES.

    Raises DataError when the file cannot be read, is neither, or holds no table of two columns."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
        if start[:2] == GZIP and not path.name.endswith(".gz"):
            raise DataError(f"{path} is compressed and not named so; call it {path.name}.gz, as Spark goes by the name")
        bounds = Bounds(WHOLE_BYTES, WHOLE_BYTES) if whole else Bounds(GROUPS * TEXT_BYTES, ROWS)
        return _parquet(path, bounds.rows) if start == MAGIC else _text(path, bounds)
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; give one of its files, and put the folder into the result") from None
    except (OSError, EOFError) as error:
        raise DataError(f"cannot read {path}: {error.strerror if isinstance(error, OSError) else error}") from None
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is damaged Parquet: {str(error).splitlines()[0]}") from None


def _parquet(path: Path, most_rows: int) -> TableSample:
    file = pq.ParquetFile(path)
    groups = sorted({0, file.num_row_groups // 2, file.num_row_groups - 1} & set(range(file.num_row_groups)))
    groups = list(range(file.num_row_groups)) if most_rows == WHOLE_BYTES else groups
    parts = [file.read_row_group(group).slice(0, most_rows // GROUPS + 1) for group in groups]
    table = pa.concat_tables(parts or [file.read()])
    if table.num_rows == 0:
        raise DataError(f"{path} has no rows")
    types = {field.name: _plain_type(field.type) for field in table.schema}
    if len(types) < table.num_columns:
        raise DataError(f"{path} has two columns of one name; rename one")
    return TableSample(path, table.to_pydict(), dict(types), file.metadata.num_rows, None)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _text(path: Path, bounds: Bounds) -> TableSample:
    pieces, size = _pieces(path, bounds.bytes)
    if pieces[0][:2] in UTF_16:
        raise DataError(f"{path} is UTF-16; write it as UTF-8 (iconv -f UTF-16 -t UTF-8), which all engines read")
    if pieces[0].lstrip()[:2] in (b'{"', b"[{"):
        raise DataError(f"{path} is JSON; `sluice init` looks at CSV and Parquet: convert a part of it to Parquet, "
                        'and say log.format = "json" in the result to read the whole')
    if b"\0" in pieces[0]:
        raise DataError(f"{path} is neither text nor Parquet; convert it to one of them")
    dialect = sniff(pieces[0], path)
    lines = [row for number, piece in enumerate(pieces) for row in dialect.rows(piece, first=number == 0)]
    width = len(dialect.names)
    fitting = [row for row in lines if len(row) == width]
    if not fitting:
        raise DataError(f"{path} has no rows below its header")
    stride = max(1, len(fitting) // bounds.rows)
    columns = {name: [row[place] for row in fitting[::stride]] for place, name in enumerate(dialect.names)}
    estimate = len(lines) if len(pieces) == 1 else round(size / (sum(map(len, pieces)) / len(lines)))
    return TableSample(path, columns, dict.fromkeys(columns), estimate, dialect)


def _pieces(path: Path, most_bytes: int) -> tuple[list[bytes], int]:
    """Whole lines of the beginning, middle and end, and the size in bytes; a compressed file shows its beginning."""
    if path.name.endswith(".gz"):
        with gzip.open(path, "rb") as packed:
            start = packed.read(most_bytes)
            return [_whole_lines(start, len(start) == most_bytes)], len(start)
    size = path.stat().st_size
    if size == 0:
        raise DataError(f"{path} is empty")
    with path.open("rb") as file:
        if size <= most_bytes:
            return [file.read()], size
        pieces = [_whole_lines(file.read(TEXT_BYTES), True)]
        for place in (size // 2, size - TEXT_BYTES):
            file.seek(place)
            file.readline()
            pieces.append(_whole_lines(file.read(TEXT_BYTES), True))
    return pieces, size


def _whole_lines(piece: bytes, cut: bool) -> bytes:
    return piece[: piece.rfind(b"\n") + 1] if cut and b"\n" in piece else piece
