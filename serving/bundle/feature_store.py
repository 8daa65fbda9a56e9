"""Encoded features of all users or all items, row-major and sorted by key, memory-mapped.

A key's row is found by bisection in a sorted array of UTF-8 bytes: workers share its pages, and a million keys cost no
Python objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contracts.bundle.bundle import load_array, save_array
from contracts.errors import BundleError, DataError
from contracts.features.vocabulary import ranks, typed_keys

UNKNOWN_ROW = -1
PARTS = ("keys", "ids", "dense")


class FeatureStore:
    """keys S-bytes [N]; ids int32 [N + 1, W] and dense float32 [N + 1, D].

    The last row is what the encoder writes for a key of which nothing is known, so that row -1 finds it.
    """

    def __init__(self, keys: np.ndarray, ids: np.ndarray, dense: np.ndarray) -> None:
        self.keys = keys
        self.ids = ids
        self.dense = dense

    def __len__(self) -> int:
        return len(self.keys)

    def key(self, row: int) -> str:
        return self.keys[row].decode()

    def row(self, key: str) -> int:
        """-1 when the table does not hold the key."""
        return int(self.rows([key])[0])

    def rows(self, keys: Sequence[str]) -> np.ndarray:
        """int32 [len(keys)], -1 for each unknown key."""
        wanted, present = typed_keys(keys, "string")
        rank, found = ranks(self.keys, wanted)
        return np.where(found & present, rank, UNKNOWN_ROW).astype(np.int32)

    def save(self, folder: Path, name: str) -> None:
        for part, array in zip(PARTS, (self.keys, self.ids, self.dense), strict=True):
            save_array(folder / f"{name}_{part}.npy", array)

    @classmethod
    def load(cls, folder: Path, name: str) -> FeatureStore:
        """Raises BundleError when a part is missing or the parts do not fit together."""
        keys, ids, dense = (_part(folder / f"{name}_{part}.npy") for part in PARTS)
        if not len(keys) + 1 == len(ids) == len(dense):
            raise BundleError(f"{folder}: table {name!r} has {len(keys)} keys, {len(ids)} rows of ids and {len(dense)} "
                              "dense ones; both must have one row more than keys: assemble the bundle again")
        return cls(keys, ids, dense)


def _part(path: Path) -> np.ndarray:
    try:
        return load_array(path)
    except (OSError, ValueError) as error:
        raise BundleError(f"the bundle's table {path} cannot be read ({error}); assemble the bundle again") from None


def sort_order(keys: Sequence[str], name: str) -> tuple[np.ndarray, np.ndarray]:
    """(sorted keys as bytes, the order that sorts). Raises DataError on a missing, NUL-bearing or repeated key."""
    wrong = next((key for key in keys if key is None or "\0" in key), "")
    if wrong != "":
        raise DataError(f"the online table of {name} has the key {wrong!r}; clean the column and run `sluice features`")
    raw = np.array([key.encode() for key in keys], dtype=np.bytes_) if len(keys) else np.empty(0, dtype="S1")
    order = np.argsort(raw, kind="stable")
    ordered = raw[order]
    repeated = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(repeated):
        key = ordered[repeated[0]].decode()
        raise DataError(f"the online table of {name} holds the key {key!r} twice; it must have one row per key: run "
                        "`sluice features` again")
    return ordered, order
