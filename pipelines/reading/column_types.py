"""Parquet files of one table whose columns differ from file to file, in groups that can be read as one each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.errors import DataError


def groups(files: Sequence[Path], what: str, names: Sequence[str] | None = None) -> list[list[Path]]:
    """The files, oldest first by their names, in groups of which none holds one column as two types: what one
    configuration read as text, and a later one as numbers. With `names` each group has these columns alike: all of its
    files have one, as one type, or none does. Raises DataError where a file is damaged."""
    files = sorted(files, key=lambda file: file.name)
    types = [types_of(file, what) for file in files]
    if names is None:
        every = sorted({name for one in types for name in one})
        names = [name for name in every if len({one[name] for one in types if name in one}) > 1]
    found = dict[tuple[pa.DataType | None, ...], list[Path]]()
    for file, one in zip(files, types, strict=True):
        found.setdefault(tuple(map(one.get, names)), []).append(file)
    return sorted(found.values(), key=lambda group: group[-1].name)


def types_of(file: Path, what: str) -> dict[str, pa.DataType]:
    """Of its columns. Raises DataError where it is damaged."""
    try:
        return {field.name: field.type for field in pq.read_schema(file)}
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{what}: {file} is damaged or cut short; copy or write this file again") from error
