"""What each field adds to the first layer of a DNN, and so to its logit.

    first layer         h = W_r r + W_c c + b
    without a field f   h - W_f (x_f - gone_f)                          W_f: the columns of f alone
    to first order      logit - logit without f ~ (h - h without f) . dlogit/dh

All fields of all items together cost about as much as one further row of the request: each reads its own few columns
of the layer, where a row of inputs without the field would read all. Compiled (models/inference/field_deltas.cpp) where
a compiler is, else in numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from contracts.features.encoding import Encoded
from models.inference.compiled_deltas import CompiledDeltas, OwnColumns, Sums
from models.inference.split_ranker import BegunDnn, SplitDnn

NO_COLUMNS = np.empty(0, dtype=np.int64)


class FirstLayer:
    """Of n items: `hidden` [n, H]; `crossed` [n, H], what columns of no field add to it, crosses and pair rates;
    `logits` [n]; `estimates` [n, F], by how much each logit falls without a field,
    roughly."""

    def __init__(
        self, hidden: np.ndarray, crossed: np.ndarray, logits: np.ndarray, estimates: np.ndarray, deltas: np.ndarray,
        places: _Places,
    ) -> None:
        self.hidden, self.crossed, self.logits, self.estimates = hidden, crossed, logits, estimates
        self._deltas, self._places = deltas, places

    def without(self, item: np.ndarray, field: np.ndarray) -> np.ndarray:
        """[k, H]: the layer of items [k], each without the own columns of a field."""
        found = self.hidden.take(item, axis=0)
        found -= self._deltas.take(self._places.rows(item, field, len(self.hidden)), axis=0)
        return found


class _Places(NamedTuple):
    """Where the deltas of fields lie, each [F]: row `first` + `blocks` x n + item x `each`, of n items."""

    first: np.ndarray
    blocks: np.ndarray
    each: np.ndarray

    def rows(self, item: np.ndarray, field: np.ndarray, items: int) -> np.ndarray:
        """[k] of items and fields [k]."""
        return self.first[field] + self.blocks[field] * items + self.each[field] * item


class _Group(NamedTuple):
    """Fields with equally many columns: places [g], columns [g, k], weights [g, k, H]."""

    places: np.ndarray
    columns: np.ndarray
    weights: np.ndarray


class FieldDeltas:
    """`columns` names the field of every input column of the request and of the candidate; `fields` those that are
    asked about. A candidate's column of no such field is a cross's, or a pair rate's: `owners` [columns, F] says whose
    parts it counts for, in the estimates alone. `missing` are one row of each block where nothing is known.

    Deltas are the rows of one array: zero, of the request's fields one each, of every other field one for each item.
    """

    def __init__(
        self, served: SplitDnn, fields: Sequence[str], columns: tuple[Sequence[str], Sequence[str]],
        owners: np.ndarray, missing: tuple[Encoded, Encoded],
    ) -> None:
        self._served, mlp = served, served.mlp
        request, candidate = (np.array(names) for names in columns)
        self._gone = served.inputs.request(missing[0])[0], served.right(served.begin(missing[0]), missing[1])[0]
        weights = mlp.request_weights, mlp.candidate
        self._groups = tuple(list(_groups(fields, own, weight)) for own, weight in zip((request, candidate), weights,
                                                                                       strict=True))
        self._of_request, self._of_items = (_all_places(groups) for groups in self._groups)
        self._places = self._placed(len(fields))
        self._crossed = np.flatnonzero(~np.isin(candidate, np.array(fields)))
        self._crossed_weights = np.ascontiguousarray(mlp.candidate[self._crossed])
        self._nothing = self._gone[1] @ mlp.candidate
        self._owners, self._fields = owners[self._crossed].astype(np.float32), len(fields)
        self._sums = self._compiled(weights) or self._by_numpy

    def of(self, begun: BegunDnn, candidate: Encoded) -> FirstLayer:
        """Of a request of one row and items [n, ...]."""
        right = self._served.right(begun, candidate)
        crossed = right[:, self._crossed] @ self._crossed_weights
        right -= self._gone[1]
        found = self._sums(begun.inputs - self._gone[0], right, begun.hidden + self._nothing)
        return FirstLayer(found.hidden, crossed, found.logits, found.estimates, found.deltas, self._places)

    def _compiled(self, weights: tuple[np.ndarray, np.ndarray]) -> CompiledDeltas | None:
        behind = self._served.mlp.compiled
        if behind is None:
            return None
        blocks = zip(self._groups, (NO_COLUMNS, self._crossed), weights, strict=True)
        request, items = (OwnColumns([own for group in groups for own in group.columns], further, weight)
                          for groups, further, weight in blocks)
        places = np.concatenate([self._of_request, self._of_items])
        return CompiledDeltas(behind, self._fields, places, request, items, self._crossed_weights, self._owners)

    def _by_numpy(self, request: np.ndarray, items: np.ndarray, shared: np.ndarray) -> Sums:
        """As CompiledDeltas."""
        deltas, first = self._deltas(request, items), 1 + len(self._of_request)
        of_items = deltas[first:].reshape(len(self._of_items), len(items), -1)
        changed = items[:, self._crossed]
        hidden = of_items.sum(axis=0)
        hidden += shared
        hidden += changed @ self._crossed_weights
        logits, slopes = self._served.mlp.slopes(hidden)
        estimates = np.zeros((len(items), self._fields), dtype=np.float32)
        estimates[:, self._of_request] = slopes @ deltas[1:first].T
        estimates[:, self._of_items] = (of_items.transpose(1, 0, 2) @ slopes[:, :, None])[:, :, 0]
        if len(self._crossed):
            estimates += (changed * (slopes @ self._crossed_weights.T)) @ self._owners
        return Sums(deltas, hidden, logits[:, 0], estimates)

    def _placed(self, fields: int) -> _Places:
        places = _Places(*(np.zeros(fields, dtype=np.int64) for _ in range(3)))
        places.first[self._of_request] = 1 + np.arange(len(self._of_request))
        places.first[self._of_items] = 1 + len(self._of_request)
        places.blocks[self._of_items] = np.arange(len(self._of_items))
        places.each[self._of_items] = 1
        return places

    def _deltas(self, *changed: np.ndarray) -> np.ndarray:
        """Of what differs from a row where nothing is known: [1, R] and [n, C]."""
        rows = 1 + len(self._of_request) + len(self._of_items) * len(changed[1])
        found = np.empty((rows, self._served.mlp.candidate.shape[1]), dtype=np.float32)
        found[0], start = 0.0, 1
        for groups, inputs in zip(self._groups, changed, strict=True):
            for group in groups:
                end = start + len(group.places) * len(inputs)
                block = found[start:end].reshape(len(group.places), len(inputs), -1)
                np.matmul(inputs[:, group.columns].transpose(1, 0, 2), group.weights, out=block)
                start = end
        return found


def _groups(fields: Sequence[str], columns: np.ndarray, weights: np.ndarray) -> Iterator[_Group]:
    by_count: dict[int, list[tuple[int, np.ndarray]]] = {}
    for place, name in enumerate(fields):
        own = np.flatnonzero(columns == name)
        if len(own):
            by_count.setdefault(len(own), []).append((place, own))
    for members in by_count.values():
        own = np.array([each for _, each in members])
        yield _Group(np.array([place for place, _ in members]), own, weights[own])


def _all_places(groups: Sequence[_Group]) -> np.ndarray:
    return np.concatenate([group.places for group in groups] or [np.empty(0, dtype=np.int64)])
