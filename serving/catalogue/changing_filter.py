"""A filter column of items that change: the bundle's own sets, corrected for the items that were described anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from serving.bundle.filter_column import MISSING, FilterColumn
from serving.bundle.item_set import ItemSet
from serving.changing_index.changing_set import ChangingSet

NOT_CHANGED = -2


class _Changed(NamedTuple):
    """Codes [n] of the rows [n] that changed, and the set of all others."""

    rows: np.ndarray
    codes: np.ndarray
    others: ItemSet


class ChangingFilter:
    """Of `size` rows, the first of which are those of `stored`. What is `put` requests see after `publish`."""

    def __init__(self, stored: FilterColumn, size: int) -> None:
        self._stored, self._size = stored, size
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []
        self._own, self._others = np.full(size, NOT_CHANGED, dtype=np.int32), ChangingSet(np.ones(size, dtype=bool))
        self._unseen, self._rows, self._is_new = list[int](), np.empty(0, dtype=np.int64), False
        self._changed = self._taken()

    def put(self, row: int, value: str | None) -> None:
        """None where the item has no value."""
        if self._own[row] == NOT_CHANGED:
            self._unseen.append(row)
        self._own[row], self._is_new = self._code(value), True

    def stored_value(self, row: int) -> str | None:
        """Of a row of the bundle."""
        code = int(self._stored.codes[row])
        return None if code < 0 else bytes(self._stored.values[code]).decode()

    def values_of(self, rows: np.ndarray) -> list[str | None]:
        """Of these rows, as they were put."""
        return [self._value(row, code) for row, code in zip(rows.tolist(), self._own[rows].tolist(), strict=True)]

    def _value(self, row: int, code: int) -> str | None:
        if code == NOT_CHANGED:
            return self.stored_value(row) if row < len(self._stored.codes) else None
        return None if code == MISSING else self._texts[code]

    def publish(self) -> None:
        if self._is_new:
            new, self._unseen = np.array(self._unseen, dtype=np.int64), []
            self._rows = np.concatenate([self._rows, new])
            self._others.put(new, False)
            self._changed, self._is_new = self._taken(), False

    def items(self, wanted: Sequence[str]) -> ItemSet:
        """Those whose value is one of `wanted`."""
        now, bits = self._changed, np.zeros(-(-self._size // 8), dtype=np.uint8)
        stored = self._stored.items(wanted).bits
        bits[: len(stored)] = stored
        bits &= now.others.bits
        codes = [code for code in map(self._codes.get, wanted) if code is not None]
        rows = now.rows[np.isin(now.codes, codes)]
        np.bitwise_or.at(bits, rows >> 3, (1 << (rows & 7)).astype(np.uint8))
        return ItemSet(bits, self._size)

    def _taken(self) -> _Changed:
        return _Changed(self._rows, self._own[self._rows], self._others.taken())

    def _code(self, value: str | None) -> int:
        if value is None:
            return MISSING
        if value not in self._codes:
            self._texts.append(value)
            self._codes[value] = len(self._codes)
        return self._codes[value]
