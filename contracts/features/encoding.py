"""Raw values -> ids and dense inputs at request time, bit for bit what the Spark pipeline writes.

Only operations that are exact on both sides: look-up of typed keys, comparison with stored float64 edges, crosses as
mixed-radix int64 of encoded ids. Logarithm and scaling happen here alone, for training (`scale` on the raw column of
the Parquet file) and for serving.

Raw columns are Python lists, numpy arrays or Arrow arrays with one entry per row; None (or NaN) is missing;
multi-valued and sequence columns hold a list per row. A request comes as lists; a job encodes Arrow batches, by the
same functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from contracts.config.section import Side
from contracts.errors import DataError
from contracts.features.arrow_columns import arrow_numbers, first_entries
from contracts.features.feature_spec import FIRST_ID, PADDING, UNKNOWN, FeatureField, FeatureSpec, IdSlot
from contracts.features.vocabulary import Vocabulary

Column: TypeAlias = Sequence[Any] | np.ndarray | pa.Array | pa.ChunkedArray
LARGEST_SCALED = 1e6


class Encoded(NamedTuple):
    """ids [B, sum of widths] int32 and dense [B, D] float32, laid out as `FeatureSpec.id_slots(*sides)` says."""

    ids: np.ndarray
    dense: np.ndarray


def number(values: Column) -> np.ndarray:
    """float64 with NaN for missing."""
    if isinstance(values, pa.ChunkedArray):
        return np.concatenate([arrow_numbers(chunk) for chunk in _chunks(values)])
    if isinstance(values, pa.Array):
        return arrow_numbers(values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        return values.astype(np.float64)
    try:
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    except (TypeError, ValueError):
        wrong = next(v for v in values if v is not None and not isinstance(v, int | float))
        raise DataError(f"{wrong!r} is a {type(wrong).__name__}, a number is needed") from None


def bin_ids(values: np.ndarray, edges: Sequence[float]) -> np.ndarray:
    """Bin b holds edges[b-1] <= x < edges[b]; its id is b + 2. NaN gets 1 (unknown)."""
    ids = np.searchsorted(np.asarray(edges, dtype=np.float64), values, side="right") + FIRST_ID
    return np.where(np.isnan(values), UNKNOWN, ids).astype(np.int32)


def scale(values: np.ndarray, field: FeatureField) -> np.ndarray:
    """(x - mean) / std as float32, of log1p(max(x, 0)) where the field says so; missing, infinite -> scaled `default`.

    Cut at 10^6 standard deviations, so that no finite input overflows.
    """
    filled = np.where(np.isfinite(values), values, field.default)
    if field.log:
        filled = np.log1p(np.maximum(filled, 0.0))
    with np.errstate(over="ignore"):
        return np.clip((filled - field.mean) / field.std, -LARGEST_SCALED, LARGEST_SCALED).astype(np.float32)


def radix_code(parts: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray:
    """int64 code ((id_0 * size_1) + id_1) * size_2 + id_2 ...; injective while the product of sizes is below 2^63."""
    code = parts[0].astype(np.int64)
    for ids, size in zip(parts[1:], sizes[1:], strict=True):
        code = code * size + ids
    return code


class _Layout(NamedTuple):
    """Fields of some sides in their order, those of them that are dense inputs too, and columns of ids."""

    fields: list[FeatureField]
    dense: list[FeatureField]
    id_width: int

    @classmethod
    def of(cls, spec: FeatureSpec, *sides: Side) -> _Layout:
        fields = spec.of_side(*sides)
        return cls(fields, [field for field in fields if field.dense], spec.id_width(*sides))


class Encoder:
    """Holds the spec and the vocabularies; knows neither files nor models."""

    def __init__(self, spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary]) -> None:
        self.spec = spec
        self.vocabularies = vocabularies
        self._crosses = spec.crosses()
        self._layouts: dict[tuple[Side, ...], _Layout] = {}
        self.part_slots = {part: spec.slot(part) for field in self._crosses for part in field.parts}
        self._parts = {field.name: _names_and_sizes([self.part_slots[part] for part in field.parts])
                       for field in self._crosses}
        missing = [f.vocabulary for f in spec.fields if f.vocabulary and f.vocabulary not in vocabularies]
        if missing:
            raise DataError(f"vocabulary {missing[0]!r} of the feature spec is not among the stored ones")

    def encode(self, columns: Mapping[str, Column], *sides: Side) -> Encoded:
        """All fields of `sides` (without 'cross') for B rows. A column that is absent counts as missing throughout."""
        rows = len(next(iter(columns.values()))) if columns else 1
        if sides not in self._layouts:
            self._layouts[sides] = _Layout.of(self.spec, *sides)
        layout = self._layouts[sides]
        ids = np.empty((rows, layout.id_width), dtype=np.int32)
        dense = np.empty((rows, len(layout.dense)), dtype=np.float32)
        start = 0
        for field in layout.fields:
            for block in self.field_ids(field, columns.get(field.name, [None] * rows)):
                ids[:, start : start + field.length] = block
                start += field.length
        for place, field in enumerate(layout.dense):
            dense[:, place] = scale(number(columns.get(field.name, [None] * rows)), field)
        return Encoded(ids, dense)

    def slot_ids(
        self, columns: Mapping[str, Column] | pa.RecordBatch | pa.Table, wanted: Collection[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Slot name -> int32 [B, width] of all sides, crosses included; `wanted` names fields, all without it.

        Raises DataError when a column is absent.
        """
        if not isinstance(columns, Mapping):
            columns = dict(zip(columns.schema.names, columns.columns, strict=True))
        fields = [field for field in self.spec.fields if wanted is None or field.name in wanted]
        crosses = [field for field in fields if field.kind == "cross" and not field.product]
        needed = {field.name for field in fields} | {self.spec.slot(p).field for field in crosses for p in field.parts}
        ids: dict[str, np.ndarray] = {}
        for field in self.spec.fields:
            if field.name in needed and field.kind not in ("cross", "statistic"):
                blocks = self.field_ids(field, _given(columns, field.name))
                ids |= {name: block for (name, _, _), block in zip(field.slots(), blocks, strict=True)}
        parts = {name: block[:, 0] for name, block in ids.items()}
        ids |= {field.name: self._cross(field, parts)[:, None] for field in crosses}
        kept = {name for field in fields for name, _, _ in field.slots()}
        return {name: block for name, block in ids.items() if name in kept}

    def field_ids(self, field: FeatureField, values: Column) -> list[np.ndarray]:
        """One [B, length] int32 array per id slot of the field."""
        if field.dense:
            numbers = number(values)
            return [bin_ids(numbers, edges)[:, None] for edges in field.edges.values()]
        if isinstance(values, pa.ChunkedArray):
            return [np.concatenate([self._arrow_ids(field, chunk) for chunk in _chunks(values)])]
        if isinstance(values, pa.Array):
            return [self._arrow_ids(field, values)]
        if field.kind == "categorical":
            return [self._keys(field).look_up(_plain(values), field.key_type)[:, None]]
        return [self._list_ids(field, values)]

    def _arrow_ids(self, field: FeatureField, values: pa.Array) -> np.ndarray:
        keys = self._keys(field)
        if field.kind == "categorical":
            return keys.look_up_arrow(values, field.key_type)[:, None]
        rows, places, entries = first_entries(values, field.length)
        ids = np.full((len(values), field.length), PADDING, dtype=np.int32)
        ids[rows, places] = keys.look_up_arrow(entries, field.key_type)
        return ids

    def _list_ids(self, field: FeatureField, values: Sequence[Any] | np.ndarray) -> np.ndarray:
        ids = np.full((len(values), field.length), PADDING, dtype=np.int32)
        kept = [_plain(entries)[: field.length] if entries is not None else [] for entries in values]
        found, start = self._keys(field).look_up([entry for row in kept for entry in row], field.key_type), 0
        for row, entries in enumerate(kept):
            if entries:
                ids[row, : len(entries)] = found[start : start + len(entries)]
                start += len(entries)
        return ids

    def _keys(self, field: FeatureField) -> Vocabulary:
        return self.vocabularies[field.vocabulary or ""]

    def cross_ids(self, part_ids: Mapping[str, np.ndarray]) -> np.ndarray:
        """[B, number of crosses with ids]; `part_ids` maps a part's slot name to its ids, [B] or [1] (broadcast)."""
        found = np.empty((max(map(len, part_ids.values()), default=0), len(self._crosses)), dtype=np.int32)
        for place, field in enumerate(self._crosses):
            found[:, place] = self._cross(field, part_ids)
        return found

    def _cross(self, field: FeatureField, part_ids: Mapping[str, np.ndarray]) -> np.ndarray:
        names, sizes = self._parts[field.name]
        code = radix_code([part_ids[name] for name in names], sizes)
        if field.buckets:
            return (FIRST_ID + code % field.buckets).astype(np.int32)
        return self._keys(field).look_up_codes(code)

    def cross_code(self, parts: Sequence[str], part_ids: Mapping[str, np.ndarray]) -> np.ndarray:
        """Mixed-radix int64 code [B] of the ids [B] of these slots, which a cross's vocabulary is fitted on."""
        names, sizes = _names_and_sizes([self.part_slots.get(part) or self.spec.slot(part) for part in parts])
        return radix_code([part_ids[name] for name in names], sizes)


def _names_and_sizes(slots: Sequence[IdSlot]) -> tuple[list[str], list[int]]:
    return [slot.name for slot in slots], [slot.size for slot in slots]


def _given(columns: Mapping[str, Column], name: str) -> Column:
    if name not in columns:
        raise DataError(f"the raw column {name!r} is not among the given ones: {', '.join(columns) or 'none'}")
    return columns[name]


def _chunks(values: pa.ChunkedArray) -> list[pa.Array]:
    return values.chunks or [pa.nulls(0, values.type)]


def _plain(values: Sequence[Any] | np.ndarray) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
