"""One item column of numbers that requests may ask ranges of: sorted once, so that a range costs what it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.bundle.bundle import load_array, save_array
from contracts.errors import DataError
from serving.bundle.item_set import ItemSet

BY_ROWS = 1 / 8  # of the items: what holds more is compared one by one, which reads memory in its order
MICROS = pa.timestamp("us", "UTC")


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """values float [I], NaN where the item has none."""

    values: np.ndarray
    _order: np.ndarray = field(init=False, repr=False)
    _sorted: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        order = _ascending(values)[: np.count_nonzero(~np.isnan(values))]
        object.__setattr__(self, "_order", order)
        object.__setattr__(self, "_sorted", values[order])

    def within(self, least: float, most: float) -> ItemSet:
        """Items whose number lies within, bounds included."""
        low, high = bounds(least, most, self._sorted.dtype)
        begin, end = np.searchsorted(self._sorted, low, "left"), np.searchsorted(self._sorted, high, "right")
        if end - begin > BY_ROWS * len(self.values):
            return scanned(self.values, least, most)
        members = np.zeros(len(self.values), dtype=bool)
        members[self._order[begin:end]] = True
        return ItemSet.of(members)

    def save(self, folder: Path, name: str) -> None:
        save_array(folder / _file(name), self.values)

    @classmethod
    def load(cls, folder: Path, name: str) -> NumberColumn:
        return cls(load_array(folder / _file(name)))


def bounds(least: float, most: float, kind: np.dtype) -> tuple[np.floating, np.floating]:
    """As numbers of that kind; what is beyond all of them is infinite."""
    with np.errstate(over="ignore"):
        return kind.type(least), kind.type(most)


def scanned(values: np.ndarray, least: float, most: float) -> ItemSet:
    """The same by comparing every number."""
    low, high = bounds(least, most, values.dtype)
    return ItemSet.of((values >= low) & (values <= high))


def _ascending(values: np.ndarray) -> np.ndarray:
    """int32 [I]: NaN last, equals in any order. Sorting floats of 32 bits in front of their places, as one number of
    64 bits, takes a third of what `np.argsort` does."""
    if values.dtype != np.float32:
        return np.argsort(values).astype(np.int32)
    bits = np.where(np.isnan(values), np.float32("nan"), values).view(np.int32)
    ranked = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64)  # negative ones fall as their bits rise
    return ((np.sort((ranked << 32) | np.arange(len(values)))) & 0xFFFFFFFF).astype(np.int32)


def from_raw(values: pa.ChunkedArray, name: str) -> NumberColumn:
    """Numbers as they are, times as seconds since 1970, UTC. Raises DataError on any other type."""
    kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        micros = values.cast(pa.timestamp("us")) if pa.types.is_date(kind) else values
        return NumberColumn(_plain(micros.cast(MICROS, safe=False).cast(pa.int64())) / 1e6)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return NumberColumn(_plain(values))
    raise DataError(f"retrieve.range_fields: column {name!r} is of the type {kind}; only numbers and times have "
                    "ranges: derive such a column, or take it from the list")


def _plain(values: pa.ChunkedArray) -> np.ndarray:
    """float64 [I], NaN where there is none."""
    found: np.ndarray = pc.fill_null(values.cast(pa.float64(), safe=False), float("nan")).to_numpy()
    return found


def _file(name: str) -> str:
    return f"range_{name}.npy"
