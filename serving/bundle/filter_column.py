"""One item column that requests may filter by: a code per item and the sorted values the codes stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contracts.bundle.bundle import load_array, save_array
from contracts.errors import DataError

MISSING = -1


@dataclass(frozen=True, eq=False)
class FilterColumn:
    """codes int32 [I], -1 where the item has no value; values: sorted S-bytes."""

    codes: np.ndarray
    values: np.ndarray

    def passing(self, wanted: Sequence[str]) -> np.ndarray:
        """bool [I]: items whose value is one of `wanted`; a value that no item has matches nothing."""
        keys = np.array([value.encode() for value in wanted if "\0" not in value], dtype=np.bytes_)
        return np.isin(self.codes, np.flatnonzero(np.isin(self.values, keys)))

    def save(self, folder: Path, name: str) -> None:
        save_array(folder / f"filter_{name}_codes.npy", self.codes)
        save_array(folder / f"filter_{name}_values.npy", self.values)

    @classmethod
    def load(cls, folder: Path, name: str) -> FilterColumn:
        return cls(load_array(folder / f"filter_{name}_codes.npy"), load_array(folder / f"filter_{name}_values.npy"))


def from_raw(values: Sequence[object], name: str) -> FilterColumn:
    """Strings as they are, whole numbers in decimal, booleans as true and false.

    Raises DataError on any other type: equality of floats is no identity, and lists are not supported.
    """
    texts = [None if value is None else _text(value, name).encode() for value in values]
    known = np.unique(np.array([text for text in texts if text is not None], dtype=np.bytes_))
    if not len(known):
        known = np.empty(0, dtype="S1")
    codes = np.searchsorted(known, np.array([text or b"" for text in texts], dtype=np.bytes_))
    present = np.array([text is not None for text in texts], dtype=bool)
    return FilterColumn(np.where(present, codes, MISSING).astype(np.int32), known)


def _text(value: object, name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    raise DataError(f"retrieve.filter_fields: column {name!r} holds {value!r}, a {type(value).__name__}; only strings, "
                    "whole numbers and booleans can be filtered by: derive such a column, or take it from the list")
