"""Why an item is in the slate: how far its logit falls when one field is set to missing (unknown id, default number).

Ablation one field at a time, for the final items alone. Which fields are worth it a first-order estimate says, one
gradient for all of them (serving/stages/sensitivity.py): the LOOKED_AT largest are then set to missing one by one, in
one call of the ranker, so that what is told is exact. A network that has no such gradient has all fields ablated.
Crosses and pair rates are no fields here: they are recomputed from the changed parts, so that what they contribute
counts for each of their parts.
"""

from __future__ import annotations

import numpy as np

from contracts.features.encoding import Encoded
from contracts.features.feature_spec import DenseSlot, IdSlot
from models.inference import split_ranker
from serving.bundle.feature_store import UNKNOWN_ROW
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.given_items import GivenItems
from serving.request.query import Reason
from serving.request.request_features import Requester, RequestFeatures
from serving.stages.sensitivity import Sensitivity

TOP = 3
LOOKED_AT = 6  # fields per item
ROUNDING = 1e-5  # rows of one call may round differently; a smaller change is none


class Reasons:
    """Explains the bundle's ranker: one ablation per field of user, context and item. `fields` are their names, in the
    order of `changes`."""

    def __init__(self, bundle: LoadedBundle, features: RequestFeatures) -> None:
        self._ranker, self._features = split_ranker.of(bundle.ranker), features
        spec = bundle.spec
        request = _owners(spec.block_ids("request"), spec.block_dense("request"))
        items = _owners(spec.id_slots("item"), spec.dense_slots("item"))
        self.fields = [*request, *items]
        nothing = features.candidate_inputs(np.array([UNKNOWN_ROW]), features.missing_request.ids)
        self._missing = features.missing_request, nothing
        self._owned = _masks(request, self._missing[0], 0, len(items)), _masks(items, nothing, len(request), 0)
        self._sensitivity = Sensitivity(bundle.ranker, spec, self.fields)

    def top(
        self, rows: np.ndarray, requester: Requester, given: GivenItems | None = None
    ) -> list[list[Reason]]:
        """Per item of `rows` [n], up to three fields with the largest changes, without those that change nothing."""
        if not len(rows):
            return []
        candidate = self._features.candidate_inputs(rows, requester.inputs.ids, given)
        looked_at = self._looked_at(candidate, requester)
        changes = self._ablated(candidate, requester, looked_at)
        order = np.argsort(-np.abs(changes), axis=1, kind="stable")[:, :TOP]
        return [
            [Reason(self.fields[fields[f]], float(item[f])) for f in best.tolist() if abs(item[f]) > ROUNDING]
            for item, fields, best in zip(changes, looked_at, order, strict=True)
        ]

    def changes(self, rows: np.ndarray, requester: Requester) -> np.ndarray:
        """[n, number of fields]: logit as it is minus logit without the field, in the order of `fields`."""
        candidate = self._features.candidate_inputs(rows, requester.inputs.ids)
        return self._ablated(candidate, requester, self._all(len(rows)))

    def _all(self, count: int) -> np.ndarray:
        return np.broadcast_to(np.arange(len(self.fields)), (count, len(self.fields)))

    def _looked_at(self, candidate: Encoded, requester: Requester) -> np.ndarray:
        """[n, LOOKED_AT] fields of each item, or all where the network cannot be asked."""
        found = None
        if len(self.fields) > LOOKED_AT:
            found = self._sensitivity.changes(requester.inputs, candidate, self._missing)
        if found is None:
            return self._all(len(candidate.ids))
        return np.argsort(-np.abs(found), axis=1, kind="stable")[:, :LOOKED_AT]

    def _ablated(self, items: Encoded, requester: Requester, fields: np.ndarray) -> np.ndarray:
        """[n, m] of fields [n, m]: by how much the logit of each item exceeds the one without the field."""
        request, candidate = self._variants(items, requester, fields)
        logits = self._ranker.logits(self._ranker.begin(request), candidate).reshape(-1, len(items.ids))
        return (logits[0] - logits[1:]).T.astype(np.float64)

    def _variants(self, items: Encoded, requester: Requester, fields: np.ndarray) -> tuple[Encoded, Encoded]:
        """Both blocks of variant 0 (unchanged) and one variant per column of `fields` [n, m], each over all items."""
        changed, (n, variants) = fields.T.reshape(-1), fields.shape
        request, candidate = (
            Encoded(*(_without(part, gone, owned.take(changed, axis=0), n, variants)
                      for part, gone, owned in zip(block, missing, masks, strict=True)))
            for block, missing, masks in zip((requester.inputs, items), self._missing, self._owned, strict=True))
        self._features.write_crosses(candidate.ids, request.ids)
        return request, candidate


def _without(rows: np.ndarray, missing: np.ndarray, owned: np.ndarray, n: int, variants: int) -> np.ndarray:
    """Rows [1 or n, W] for n items as they are, then per variant with what lies under `owned` [variants x n, W] as it
    is where nothing is known, [1, W]."""
    found = np.empty((1 + variants, n, rows.shape[1]), dtype=rows.dtype)
    found[:] = rows
    changed = found[1:].reshape(owned.shape)
    np.copyto(changed, missing, where=owned)
    return found.reshape(-1, rows.shape[1])


def _owners(id_slots: list[IdSlot], dense_slots: list[DenseSlot]) -> dict[str, tuple[list[int], list[int]]]:
    """Columns of ids and of numbers by field, in the order of the fields' first slots."""
    found: dict[str, tuple[list[int], list[int]]] = {}
    for slot in id_slots:
        found.setdefault(slot.field, ([], []))[0].extend(range(slot.start, slot.start + slot.width))
    for number in dense_slots:
        found.setdefault(number.field, ([], []))[1].append(number.start)
    return found


def _masks(
    owners: dict[str, tuple[list[int], list[int]]], inputs: Encoded, before: int, behind: int
) -> tuple[np.ndarray, np.ndarray]:
    """bool [F, W] of ids and of numbers: which columns of the block are a field's, of `before` and `behind` fields of
    the other block none."""
    masks = tuple(np.zeros((before + len(owners) + behind, part.shape[1]), dtype=bool) for part in inputs)
    for place, columns in enumerate(owners.values(), before):
        for mask, owned in zip(masks, columns, strict=True):
            mask[place, owned] = True
    return masks[0], masks[1]
