"""Encoded features of all users or all items, row-major and sorted by key, memory-mapped.

A key's row is its place in a vocabulary (contracts/features/vocabulary.py): workers share its pages, and a million keys
cost no Python objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.bundle.bundle import load_array, save_array
from contracts.errors import BundleError, DataError
from contracts.features import vocabulary
from contracts.features.encoding import Encoder
from contracts.features.feature_spec import UNKNOWN, FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from models.inference import text_places

UNKNOWN_ROW = -1
PARTS = ("ids", "dense")
FEW, FEW_SOUGHT = 32, 8  # keys that are read, and found, sooner one by one
LOOKED_AT = 1000  # items by which the field of their keys is known


class FeatureStore:
    """keys [N]; ids int32 [N + 1, W] and dense float32 [N + 1, D].

    The last row is what the encoder writes for a key of which nothing is known, so that row -1 finds it.
    """

    def __init__(self, keys: Vocabulary, ids: np.ndarray, dense: np.ndarray) -> None:
        self.keys, self.ids, self.dense = keys, ids, dense
        texts = keys.text_keys
        self._places = None if texts is None else text_places.compiled(texts)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def stored(self) -> int:
        """How many rows the bundle has."""
        return len(self.keys)

    def added_keys(self, after: int = 0) -> Sequence[str]:
        """Of rows that were added since, in their order, but for the first `after`; a bundle's own table grows none."""
        return ()

    def key(self, row: int) -> str:
        return str(self.keys.key(row))

    def keys_of(self, rows: np.ndarray) -> list[str]:
        """Of rows of the table, in their order."""
        if len(rows) <= FEW:
            return [str(key) for key in self.keys.few_keys(rows.tolist())]
        return [str(key) for key in self.keys.keys().take(pa.array(rows)).to_pylist()]

    def row(self, key: str) -> int:
        """-1 when the table does not hold the key."""
        return self.keys.place(key)

    def rows(self, keys: Sequence[str]) -> np.ndarray:
        """int32 [len(keys)], -1 for each unknown key."""
        if self._places is not None and len(keys) > FEW_SOUGHT:
            return self._places(keys).astype(np.int32)
        return self.keys.places(keys, "string").astype(np.int32)

    def save(self, folder: Path, name: str) -> None:
        vocabulary.write(folder, name, self.keys)
        for part, array in zip(PARTS, (self.ids, self.dense), strict=True):
            save_array(folder / f"{name}_{part}.npy", array)

    @classmethod
    def load(cls, folder: Path, name: str) -> FeatureStore:
        """Raises BundleError when a part is missing or the parts do not fit together."""
        keys, (ids, dense) = _keys(folder, name), (_part(folder / f"{name}_{part}.npy") for part in PARTS)
        if not len(keys) + 1 == len(ids) == len(dense):
            raise BundleError(f"{folder}: table {name!r} has {len(keys)} keys, {len(ids)} rows of ids and {len(dense)} "
                              "dense ones; both must have one row more than keys: assemble the bundle again")
        return cls(keys, ids, dense)


class OwnKeys:
    """The categorical field that holds the items' own keys, known by what the table has; models may have learned of an
    item that the table lacks, under its key."""

    def __init__(self, items: FeatureStore, spec: FeatureSpec, encoder: Encoder) -> None:
        rows = np.unique(np.linspace(0, items.stored - 1, LOOKED_AT).astype(np.int64))
        keys = items.keys_of(rows)
        self._field = next((
            spec.by_name[slot.field] for slot in spec.id_slots("item") if spec.by_name[slot.field].kind == "categorical"
            and _are_ids_of(encoder, spec.by_name[slot.field], keys, items.ids[rows, slot.start])), None)

    def __call__(self, key: str, described: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is said of an item that the table lacks, with its key, where a field can hold that and is not said."""
        field = self._field
        own = None if field is None or field.name in described else _typed(field, key)
        return described if field is None or own is None else {**described, field.name: own}


def _are_ids_of(encoder: Encoder, field: FeatureField, keys: Sequence[str], ids: np.ndarray) -> bool:
    try:
        (found,) = encoder.field_ids(field, [_typed(field, key) for key in keys])
    except DataError:  # whole numbers are no keys of a field of booleans
        return False
    return bool((found > UNKNOWN).any()) and np.array_equal(found[:, 0], ids)


def _typed(field: FeatureField, key: str) -> str | int | None:
    """A key as the field's values are; None where it is none of them."""
    if field.key_type == "string":
        return key
    try:
        return int(np.int64(int(key)))
    except (ValueError, OverflowError):  # no number, or one beyond 64 bits
        return None


def _keys(folder: Path, name: str) -> Vocabulary:
    earlier = folder / f"{name}_keys.npy"  # in a bundle of schema 2, of one width
    if earlier.exists():
        return Vocabulary.of(_part(earlier), "string")
    try:
        return vocabulary.read(folder, name)
    except DataError as error:
        raise BundleError(f"the keys of the bundle's table {name!r}: {error}; assemble the bundle again") from None


def _part(path: Path) -> np.ndarray:
    try:
        return load_array(path)
    except (OSError, ValueError) as error:
        raise BundleError(f"the bundle's table {path} cannot be read ({error}); assemble the bundle again") from None


def sort_order(keys: pa.Array, name: str) -> tuple[Vocabulary, np.ndarray]:
    """(the keys, the order that sorts them). Raises DataError on a missing or repeated one."""
    keys = keys.cast(pa.large_string())
    if keys.null_count:
        raise DataError(f"the online table of {name} has a row without a key; clean the column and run "
                        "`sluice features`")
    order = pc.array_sort_indices(keys)
    ordered = keys.take(order)
    repeated = pc.index(pc.equal(ordered[1:], ordered[:-1]), True).as_py()
    if repeated >= 0:
        raise DataError(f"the online table of {name} holds the key {ordered[repeated].as_py()!r} twice; it must have "
                        "one row per key: run `sluice features` again")
    return Vocabulary.of(ordered, "string"), order.to_numpy()
