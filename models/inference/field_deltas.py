"""What each field adds to the first layer of a DNN, and so to its logit.

    first layer         h = W_r r + W_c c + b
    without a field f   h - W_f (x_f - gone_f)                          W_f: the columns of f alone
    to first order      logit - logit without f ~ (h - h without f) . dlogit/dh

All fields of all items together cost about as much as one further row of the request: each reads its own few columns
of the layer, where a row of inputs without the field would read all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contracts.features.encoding import Encoded
from models.inference.split_ranker import BegunDnn, SplitDnn


class FirstLayer(NamedTuple):
    """hidden [n, H]; deltas [F, n, H], what the fields' own columns add to it; estimates [n, F], by how much each logit
    falls without a field, roughly."""

    hidden: np.ndarray
    deltas: np.ndarray
    estimates: np.ndarray


class _Group(NamedTuple):
    """Fields with equally many columns: places [g], columns [g, k], weights [g, k, H]."""

    places: np.ndarray
    columns: np.ndarray
    weights: np.ndarray


class FieldDeltas:
    """`columns` names the field of every input column of the request and of the candidate; `fields` those that are
    asked about. A candidate's column of no such field is a cross's, or a pair rate's: `owners` [columns, F] says whose
    parts it counts for, in the estimates alone. `missing` are one row of each block where nothing is known."""

    def __init__(
        self, served: SplitDnn, fields: Sequence[str], columns: tuple[Sequence[str], Sequence[str]],
        owners: np.ndarray, missing: tuple[Encoded, Encoded],
    ) -> None:
        self._served = served
        request, candidate = (np.array(names) for names in columns)
        self._gone = served.inputs.request(missing[0])[0], served.right(served.begin(missing[0]), missing[1])[0]
        self._of_request = [place for place, name in enumerate(fields) if (request == name).any()]
        self._masks = np.array([request == fields[place] for place in self._of_request]).reshape(-1, len(request))
        self._groups = list(_groups(fields, candidate, served.mlp.candidate))
        self._crossed = np.flatnonzero(~np.isin(candidate, np.array(fields)))
        self._crossed_weights = np.ascontiguousarray(served.mlp.candidate[self._crossed].T)
        self._owners, self._fields = owners[self._crossed], len(fields)

    def of(self, begun: BegunDnn, candidate: Encoded) -> FirstLayer:
        """Of a request of one row and items [n, ...]."""
        mlp, right = self._served.mlp, self._served.right(begun, candidate)
        hidden = right @ mlp.candidate
        hidden += begun.hidden
        deltas = self._deltas(begun.inputs[0] - self._gone[0], right - self._gone[1])
        slopes = mlp.slopes(hidden)
        estimates = (deltas.transpose(1, 0, 2) @ slopes[:, :, None])[:, :, 0]
        if len(self._crossed):
            changed = (right - self._gone[1])[:, self._crossed]
            estimates += (changed * (slopes @ self._crossed_weights)) @ self._owners
        return FirstLayer(hidden, deltas, estimates)

    def _deltas(self, request: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """[F, n, H] of what differs from a row where nothing is known: [R] and [n, C]."""
        weights = self._served.mlp.request_weights
        found = np.zeros((self._fields, len(candidate), weights.shape[1]), dtype=np.float32)
        found[self._of_request] = ((self._masks * request) @ weights)[:, None]
        for group in self._groups:
            found[group.places] = candidate[:, group.columns].transpose(1, 0, 2) @ group.weights
        return found


def _groups(fields: Sequence[str], columns: np.ndarray, weights: np.ndarray) -> list[_Group]:
    by_count: dict[int, list[tuple[int, np.ndarray]]] = {}
    for place, name in enumerate(fields):
        own = np.flatnonzero(columns == name)
        if len(own):
            by_count.setdefault(len(own), []).append((place, own))
    found = []
    for members in by_count.values():
        own = np.array([each for _, each in members])
        found.append(_Group(np.array([place for place, _ in members]), own, weights[own]))
    return found
