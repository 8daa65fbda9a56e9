"""The sums of models/inference/field_deltas.py for one request and its items, compiled (field_deltas.cpp beside it)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.inference.mlp_rows import MlpRows
from models.inference.packed_matrix import PackedMatrix, address, addresses


class Sums(NamedTuple):
    """Of n items: `deltas`, as FieldDeltas lays them out, `hidden` [n, H], `logits` [n] and `estimates` [n, F]."""

    deltas: np.ndarray
    hidden: np.ndarray
    logits: np.ndarray
    estimates: np.ndarray


class OwnColumns:
    """Of one block: the columns of each field, then those of no field, and the weights [columns of the block, H]."""

    def __init__(self, columns: Sequence[np.ndarray], further: np.ndarray, weights: np.ndarray) -> None:
        parts = [*columns, further]
        self._ends = np.cumsum([len(own) for own in columns], dtype=np.int64)
        self._columns = np.concatenate(parts).astype(np.int64)
        self._weights = np.concatenate([_packed(weights[own]).reshape(-1) for own in parts])
        self.count, self.further, self.width = len(columns), len(further), len(weights)
        self.where = address(self._ends), address(self._columns), address(self._weights)


class CompiledDeltas:
    """`places` [fields that have columns] among `fields` fields, the request's first. `crossed` [further, H] are the
    weights of the items' columns of no field, `owners` [further, F] says whose parts they count for."""

    def __init__(
        self, behind: MlpRows, fields: int, places: np.ndarray, request: OwnColumns, items: OwnColumns,
        crossed: np.ndarray, owners: np.ndarray,
    ) -> None:
        self._behind, self._fields, self._request, self._items = behind, fields, request, items
        self._places, self._owners = places.astype(np.int64), np.ascontiguousarray(owners, dtype=np.float32)
        self._crossed = _packed(crossed.T)
        self._back = [weight if weight.shape[1] == 1 else _packed(weight.T) for weight in behind.weights]
        self._where = address(self._crossed), address(self._owners)
        self._backwards = addresses(self._back)

    def __call__(self, request: np.ndarray, items: np.ndarray, shared: np.ndarray) -> Sums:
        """Of what differs from a row where nothing is known, [1, R] and [n, C], and what all rows of the first layer
        share, [1, H]."""
        request, items, shared = (np.ascontiguousarray(part, dtype=np.float32) for part in (request, items, shared))
        count, own, width = len(items), self._items, self._behind.first
        assert (request.shape[1], items.shape[1], shared.shape) == (self._request.width, own.width, (1, width))
        found = Sums(np.empty((1 + self._request.count + own.count * count, width), dtype=np.float32),
                     np.empty((count, width), dtype=np.float32), np.empty(count, dtype=np.float32),
                     np.empty((count, self._fields), dtype=np.float32))
        self._behind.library.field_deltas(
            count, self._fields, address(self._places), address(request), self._request.count, *self._request.where,
            address(items), items.shape[1], own.count, own.further, *own.where, *self._where, address(shared),
            *self._behind.where, self._backwards,
            *map(address, (found.deltas, found.hidden, found.logits, found.estimates)))
        return found


def _packed(matrix: np.ndarray) -> np.ndarray:
    packed = PackedMatrix(matrix).packed
    assert packed is not None
    return packed
