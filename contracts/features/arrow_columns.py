"""Raw feature columns as Arrow arrays: numbers, typed keys and list entries, without a Python object per row.

Sliced arrays and null lists that hold entries underneath count as what they show. A column of nulls alone, of Arrow's
type null, is a column of any kind that is missing throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from contracts.config.section import KeyType
from contracts.errors import DataError

ARROW_TYPES: dict[KeyType, pa.DataType] = {"string": pa.string(), "int64": pa.int64(), "bool": pa.int64()}


class DistinctKeys(NamedTuple):
    """`keys`: each present key once, text or int64 (to which false is 0 and true 1); `places` [B]: of each row's key
    among them, -1 where the row has none."""

    keys: pa.Array
    places: np.ndarray


class ListEntries(NamedTuple):
    """Entry i of `entries` is entry `places[i]` of the list of row `rows[i]`."""

    rows: np.ndarray
    places: np.ndarray
    entries: pa.Array


def arrow_numbers(values: pa.Array) -> np.ndarray:
    """float64 [B] with NaN for null. Raises DataError on what is no number."""
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if types.is_decimal(values.type):  # Arrow's own cast is not correctly rounded
        return np.array([np.nan if v is None else float(v) for v in values.to_pylist()], dtype=np.float64)
    if not _number(values.type):
        raise DataError(f"a column of Arrow's type {values.type} is given, a number is needed")
    numbers: np.ndarray = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _number(kind: pa.DataType) -> bool:
    return any(check(kind) for check in (types.is_integer, types.is_floating, types.is_boolean, types.is_null))


def distinct_keys(values: pa.Array, key_type: KeyType) -> DistinctKeys:
    """Raises DataError on a column of another type: equality of floats is no identity."""
    plain = values.type.value_type if types.is_dictionary(values.type) else values.type
    if not _holds(plain, key_type):
        raise DataError(f"a column of Arrow's type {plain} is given, the vocabulary holds {key_type} keys")
    if types.is_null(plain):
        values = values.cast(ARROW_TYPES[key_type])
    elif types.is_dictionary(values.type) and values.dictionary.null_count:
        values = values.dictionary_decode()
    encoded = values if types.is_dictionary(values.type) else values.dictionary_encode()
    places = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return DistinctKeys(encoded.dictionary.cast(ARROW_TYPES[key_type]), places)


def _holds(kind: pa.DataType, key_type: KeyType) -> bool:
    """Whether keys of this type may stand in such a column."""
    allowed = {
        "string": (types.is_string, types.is_large_string, types.is_string_view),
        "int64": (types.is_signed_integer, types.is_uint8, types.is_uint16, types.is_uint32),
        "bool": (types.is_boolean,),
    }[key_type]
    return any(check(kind) for check in (*allowed, types.is_null))


def first_entries(values: pa.Array, length: int) -> ListEntries:
    """The first `length` entries of each list; a null list has none. Raises DataError on what is no list."""
    if types.is_null(values.type):
        values = values.cast(pa.list_(pa.null()))
    if types.is_fixed_size_list(values.type):
        values = values.cast(pa.list_(values.type.value_type))
    if not (types.is_list(values.type) or types.is_large_list(values.type)):
        raise DataError(f"a column of Arrow's type {values.type} is given, lists are needed")
    starts = values.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    shown = np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), dtype=bool)
    counts = np.where(shown, np.minimum(np.diff(starts), length), 0)
    rows = np.repeat(np.arange(len(values)), counts)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ListEntries(rows, places, values.values.take(pa.array(starts[rows] + places)))
