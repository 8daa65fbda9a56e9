"""Vocabularies: sorted arrays of typed keys. The id of a key is its rank plus 2; a key that is not there gets 1.

Strings are kept as UTF-8 bytes of one width (numpy "S"), whose byte order is Spark's string order. A key may therefore
not hold a NUL character. Files are plain .npy, memory-mapped on load.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from contracts.config.section import KeyType
from contracts.errors import DataError
from contracts.features.arrow_columns import distinct_keys
from contracts.features.feature_spec import FIRST_ID, UNKNOWN

FOLDER = "vocabularies"


def typed_keys(values: Sequence[object], key_type: KeyType) -> tuple[np.ndarray, np.ndarray]:
    """Values -> (keys of the vocabulary's dtype, mask of the ones present).

    None is missing, and so is a text with a NUL character: fixed-width storage cannot hold it, so that no vocabulary
    does. Raises DataError on a float or another type: equality of floats is no identity.
    """
    present = np.array([value is not None for value in values], dtype=bool)
    if key_type == "string":
        wrong = next((v for v in values if v is not None and not isinstance(v, str)), None)
        if wrong is not None:
            raise DataError(f"key {wrong!r} is a {type(wrong).__name__}, the vocabulary holds strings")
        present &= np.array([not isinstance(v, str) or "\0" not in v for v in values], dtype=bool)
        return np.array([v.encode() if isinstance(v, str) else b"" for v in values], dtype=np.bytes_), present
    allowed = (bool, np.bool_) if key_type == "bool" else (int, np.integer)
    wrong = next(
        (
            v
            for v in values
            if v is not None and (not isinstance(v, allowed) or (key_type == "int64" and isinstance(v, bool)))
        ),
        None,
    )
    if wrong is not None:
        raise DataError(f"key {wrong!r} is a {type(wrong).__name__}, the vocabulary holds {key_type}")
    return np.array([0 if v is None else int(v) for v in values], dtype=np.int64), present  # type: ignore[call-overload]


def fit_order(keys: np.ndarray) -> np.ndarray:
    """Distinct keys in the order that defines their ids."""
    if keys.dtype.kind == "S" and any(b"\0" in key for key in keys.tolist()):
        raise DataError("a vocabulary key holds a NUL character; clean the column first")
    return np.unique(keys)


def look_up(vocabulary: np.ndarray, keys: np.ndarray, present: np.ndarray | None = None) -> np.ndarray:
    """Ids int32, same shape as `keys`; unknown and missing keys get 1."""
    rank, found = ranks(vocabulary, keys)
    if present is not None:
        found &= present
    return np.where(found, rank + FIRST_ID, UNKNOWN).astype(np.int32)


def look_up_arrow(vocabulary: np.ndarray, values: pa.Array, key_type: KeyType) -> np.ndarray:
    """Ids int32 [B] of an Arrow column of keys, of which each distinct one is searched once; null gets 1."""
    keys, places = distinct_keys(values, key_type)
    ids = look_up(vocabulary, *typed_keys(keys.to_pylist(), "string" if key_type == "string" else "int64"))
    return np.append(ids, np.int32(UNKNOWN))[places]


def ranks(ordered: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(place of each key in the sorted array `ordered`, mask of the keys that are there), both of the keys' shape.

    Keys are brought to the width of `ordered`, never the reverse: numpy would copy all of it for one longer key.
    """
    if len(ordered) == 0:
        return np.zeros(keys.shape, dtype=np.int64), np.zeros(keys.shape, dtype=bool)
    fits: np.ndarray | bool = True
    if keys.dtype.kind == "S":
        fits = np.char.str_len(keys) <= ordered.dtype.itemsize
        keys = keys.astype(ordered.dtype)
    rank = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return rank, (ordered[rank] == keys) & fits


def write(folder: Path, name: str, vocabulary: np.ndarray) -> None:
    """Writes FOLDER/vocabularies/NAME.npy."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    np.save(folder / FOLDER / f"{name}.npy", vocabulary, allow_pickle=False)


def read_all(folder: Path) -> dict[str, np.ndarray]:
    """Every vocabulary below `folder`, memory-mapped, by name."""
    return {
        path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in sorted((folder / FOLDER).glob("*.npy"))
    }
