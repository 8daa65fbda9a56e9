"""What all readers of a table's files agree on: which files of a folder are its, which of them a server landed and
where, what a line of JSON holds, which types they read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

LANDED_CONVERSIONS = "conversions"  # the folder of events that no table of the configuration holds
SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}


def is_hidden(within: Path) -> bool:
    """Whether a file, by its path within the folder, is a mark or lies among what tools keep for themselves: _SUCCESS,
    _delta_log, .ipynb_checkpoints; _key=value names a partition, as in Apache Spark."""
    return any(part[0] == "." or (part[0] == "_" and "=" not in part) for part in within.parts)


def landed_name(first: int, last: int) -> str:
    """Of a file of the recorded events numbered first to last."""
    return f"{first:020}-{last:020}.parquet"


def is_landed_name(name: str) -> bool:
    """Whether a server landed the file: no other writer of tables names its files so."""
    return re.fullmatch(r"\d{20}-\d{20}\.parquet", name) is not None


def landed_folder(path: str) -> str:
    """Of a table's recorded events within the landed log: where the configuration's path lies below {data}, or its last
    part."""
    found = PurePosixPath(path)
    below = found.parts[1:] if found.parts[:1] == ("{data}",) else ()
    return "/".join(below) if below and ".." not in below else found.name


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
    and no engine or not every one reads, those in microseconds and the values, within lists, maps and structs too,
    where milliseconds are not read either; of unsigned numbers, which the embedded engine does not hash, the signed
    ones that Apache Spark takes them for."""
    plain = of_other_types(schema, _plain)
    return pa.schema([before.remove_metadata() if _is_coarse(before.type) else field
                      for before, field in zip(schema, plain, strict=True)])


def _is_coarse(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.unit in ("s", "ms")


def of_other_types(schema: pa.Schema, change: Callable[[pa.DataType], pa.DataType]) -> pa.Schema:
    """The same columns without metadata, each type changed that is neither a list nor a map nor a struct, or lies in
    one."""
    return pa.schema([pa.field(field.name, _within(field.type, change), field.nullable) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_dictionary(kind):
        return _within(kind.value_type, _plain)
    return SIGNED.get(kind, kind)


def _within(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    def changed(part: pa.Field) -> pa.Field:
        return part.with_type(_within(part.type, change))

    if pa.types.is_list(kind):
        return pa.list_(changed(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(changed(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(changed(kind.value_field), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(changed(kind.key_field), changed(kind.item_field), kind.keys_sorted)
    if pa.types.is_struct(kind):
        return pa.struct([changed(part) for part in kind])
    return change(kind)
