"""Parquet files with times in nanoseconds or categories, as pandas writes them, are read from a plain copy: no engine
reads the former as they are, the embedded one not the latter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.table_files import as_engines_read, is_hidden

ROWS = 1 << 17  # at a time


def files_to_copy(path: Path) -> list[Path]:
    """All files of the table where the first one has such columns; none where it has not, or is no Parquet, which
    whoever reads it says."""
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    files = [file for file in found if file.is_file() and not (file != path and is_hidden(file.relative_to(path)))]
    try:
        schema = pq.read_schema(files[0]) if files else pa.schema([])
    except (OSError, pa.ArrowException):
        return []
    return files if as_engines_read(schema) != schema.remove_metadata() else []


def stage_plain(files: Sequence[Path], path: Path, folder: Path) -> Path:
    """A copy below `folder` of the files of `path`, at the same places; returns what to read. Times are cut off at
    microseconds, categories become their values."""
    for file in files:
        copy = folder / (file.relative_to(path) if file != path else file.name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetFile(file) as opened:
            schema = as_engines_read(opened.schema_arrow)
            with pq.ParquetWriter(copy, schema, compression="lz4") as writer:
                for batch in opened.iter_batches(ROWS):
                    writer.write_table(pa.Table.from_batches([batch]).cast(schema, safe=False))
    return folder
