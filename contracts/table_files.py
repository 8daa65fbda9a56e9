"""What all readers of a table's files agree on: which files of a folder are its, what a line of JSON holds, which
types they read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa


def is_hidden(within: Path) -> bool:
    """Whether a file, by its path within the folder, is a mark or lies among what tools keep for themselves: _SUCCESS,
    _delta_log, .ipynb_checkpoints; _key=value names a partition, as in Apache Spark."""
    return any(part[0] == "." or (part[0] == "_" and "=" not in part) for part in within.parts)


def json_object(text: str) -> dict[str, Any] | None:
    """None where the text is no object. Half a surrogate pair, which UTF-8 cannot hold, becomes "?"."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    return _encodable(found) if "\\ud" in text.lower() else found


def _encodable(found: dict[str, Any]) -> dict[str, Any]:
    cleaned: dict[str, Any] = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    return cleaned


def as_engines_read(schema: pa.Schema) -> pa.Schema:
    """The same columns without metadata: of times in nanoseconds and of dictionaries (categories), which pandas writes
    and no engine or not every one reads, those in microseconds and the values, in lists and structs as well."""
    return pa.schema([pa.field(field.name, _plain(field.type), field.nullable) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(_plain(part.type)) for part in kind])
    return kind
