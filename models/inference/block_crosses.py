"""Crosses of one request's ids with those of its candidates, column by column of both blocks.

The ids that `Encoder.cross_ids` gives, for a few rows at a time, of which a call of numpy costs more than its work:
crosses whose parts lie in the same blocks are coded together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from models.inference.block_inputs import columns_at


class _Part(NamedTuple):
    """The first, second ... part of each cross of a group: columns of the request's ids or of the candidates', and how
    many values each has."""

    of_request: bool
    columns: np.ndarray
    sizes: np.ndarray


class _Group(NamedTuple):
    """Crosses with their columns of the candidates' ids; `buckets` of hashed ones, `keys` of the others."""

    columns: np.ndarray | slice
    parts: list[_Part]
    buckets: np.ndarray | None
    keys: list[Vocabulary]


class BlockCrosses:
    """Of a spec. The candidates' block has the crosses' columns behind those of its items."""

    def __init__(self, spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary]) -> None:
        self._sizes = {slot.name: slot.size for slot in spec.id_slots("user", "context", "item")}
        self._request = {slot.name: slot.start for slot in spec.block_ids("request")}
        self._candidate = {slot.name: slot.start for slot in spec.block_ids("candidate")}
        groups: dict[tuple[object, ...], list[FeatureField]] = {}
        for field in spec.crosses():
            blocks = (part in self._request for part in field.parts)
            groups.setdefault((bool(field.buckets), *blocks), []).append(field)
        self._groups = [self._group(fields, vocabularies) for fields in groups.values()]

    def write(self, candidate_ids: np.ndarray, request_ids: np.ndarray) -> None:
        """Fills the crosses' columns of `candidate_ids` [K, W] from their items' and `request_ids`, [1, W] or
        [K, W]."""
        if len(candidate_ids):
            for group in self._groups:
                candidate_ids[:, group.columns] = _ids(group, candidate_ids, request_ids)

    def _group(self, fields: list[FeatureField], vocabularies: Mapping[str, Vocabulary]) -> _Group:
        hashed = bool(fields[0].buckets)
        return _Group(
            columns=columns_at(np.array([self._candidate[field.name] for field in fields])),
            parts=[self._part(names) for names in zip(*(field.parts for field in fields), strict=True)],
            buckets=np.array([field.buckets for field in fields], dtype=np.int64) if hashed else None,
            keys=[] if hashed else [vocabularies[field.vocabulary or ""] for field in fields],
        )

    def _part(self, names: tuple[str, ...]) -> _Part:
        of_request = names[0] in self._request
        columns = self._request if of_request else self._candidate
        return _Part(of_request, np.array([columns[name] for name in names]),
                     np.array([self._sizes[name] for name in names], dtype=np.int64))


def _ids(group: _Group, candidate_ids: np.ndarray, request_ids: np.ndarray) -> np.ndarray:
    """[K or 1, crosses] from their mixed-radix codes."""
    read = [(request_ids if part.of_request else candidate_ids).take(part.columns, axis=1) for part in group.parts]
    codes = read[0].astype(np.int64)
    for part, ids in zip(group.parts[1:], read[1:], strict=True):
        codes = codes * part.sizes + ids
    if group.buckets is None:
        return np.stack([keys.look_up_codes(code) for keys, code in zip(group.keys, codes.T, strict=True)], axis=1)
    codes %= group.buckets
    codes += FIRST_ID
    return codes
