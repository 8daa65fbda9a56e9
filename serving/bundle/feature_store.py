"""Encoded features of all users or all items, row-major and sorted by key, memory-mapped.

A key's row is its place in a vocabulary (contracts/features/vocabulary.py): workers share its pages, and a million keys
cost no Python objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.bundle.bundle import load_array, save_array
from contracts.errors import BundleError, DataError
from contracts.features import vocabulary
from contracts.features.vocabulary import Vocabulary

UNKNOWN_ROW = -1
PARTS = ("ids", "dense")
FEW = 32  # keys that are read sooner one by one


class FeatureStore:
    """keys [N]; ids int32 [N + 1, W] and dense float32 [N + 1, D].

    The last row is what the encoder writes for a key of which nothing is known, so that row -1 finds it.
    """

    def __init__(self, keys: Vocabulary, ids: np.ndarray, dense: np.ndarray) -> None:
        self.keys = keys
        self.ids = ids
        self.dense = dense

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
