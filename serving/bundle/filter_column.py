"""One item column that requests may filter by: a code per item and the sorted values the codes stand for.

The set of a value's items is computed when it is first asked for (a third of a millisecond at a million items); the
MOST_KEPT last ones are kept. Of more than FEW values at once none is: their rows lie side by side in a second order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import or_
from pathlib import Path

import numpy as np

from contracts.bundle.bundle import load_array, save_array
from contracts.errors import DataError
from serving.bundle.item_set import ItemSet

MISSING, FEW = -1, 8
BY_ROWS = 1 / 8  # of the items
MOST_KEPT = 256  # values, 32 MB at a million items


@dataclass(frozen=True, eq=False)
class FilterColumn:
    """codes int32 [I], -1 where the item has no value; values: sorted S-bytes."""

    codes: np.ndarray
    values: np.ndarray
    _kept: Callable[[int], ItemSet] = field(init=False, repr=False)
    _order: np.ndarray = field(init=False, repr=False)
    _ends: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        kept = lru_cache(MOST_KEPT)(lambda code: ItemSet.of(codes == code))
        object.__setattr__(self, "_kept", kept)
        object.__setattr__(self, "_order", np.argsort(codes, kind="stable").astype(np.int32))
        object.__setattr__(self, "_ends", np.cumsum(np.bincount(codes + 1, minlength=len(self.values) + 1)))

    def items(self, wanted: Sequence[str]) -> ItemSet:
        """Those whose value is one of `wanted`; a value that no item has matches nothing."""
        texts = (value.encode() for value in wanted if "\0" not in value)
        keys = [text for text in texts if len(text) <= self.values.dtype.itemsize]  # of one width, the longest one's
        found = [int(place) for key, place in zip(keys, np.searchsorted(self.values, np.array(keys, dtype=np.bytes_)),
                                                  strict=True)
                 if place < len(self.values) and self.values[place] == key]
        if len(found) > FEW:
            return self._any_of(found)
        return reduce(or_, map(self._kept, found), ItemSet.of(np.zeros(len(self.codes), dtype=bool)))

    def _any_of(self, found: list[int]) -> ItemSet:
        """By the rows of each code, or in one pass over the items where these are many."""
        rows = [self._order[self._ends[code] : self._ends[code + 1]] for code in found]
        if sum(map(len, rows)) <= BY_ROWS * len(self.codes):
            members = np.zeros(len(self.codes), dtype=bool)
            members[np.concatenate(rows)] = True
            return ItemSet.of(members)
        wanted = np.zeros(len(self.values) + 1, dtype=bool)  # the last one, which is -1 too: of items without a value
        wanted[found] = True
        return ItemSet.of(wanted[self.codes])

    def values_of(self, rows: np.ndarray) -> list[str | None]:
        """Of these rows."""
        codes = self.codes[rows].tolist()
        return [None if code < 0 else bytes(self.values[code]).decode() for code in codes]

    def passing(self, wanted: Sequence[str]) -> np.ndarray:
        """bool [I]: items whose value is one of `wanted`; a value that no item has matches nothing."""
        members = np.zeros(len(self.codes), dtype=bool)
        members[self.items(wanted).rows()] = True
        return members

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
    texts = [None if value is None else _checked(value, name).encode() for value in values]
    known = np.unique(np.array([text for text in texts if text is not None], dtype=np.bytes_))
    if not len(known):
        known = np.empty(0, dtype="S1")
    codes = np.searchsorted(known, np.array([text or b"" for text in texts], dtype=np.bytes_))
    present = np.array([text is not None for text in texts], dtype=bool)
    return FilterColumn(np.where(present, codes, MISSING).astype(np.int32), known)


def as_text(value: str | int) -> str:
    """As filters name it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _checked(value: object, name: str) -> str:
    if isinstance(value, str | int):
        return as_text(value)
    raise DataError(f"retrieve.filter_fields: column {name!r} holds {value!r}, a {type(value).__name__}; only strings, "
                    "whole numbers and booleans can be filtered by: derive such a column, or take it from the list")
