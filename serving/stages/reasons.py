"""Why an item is in the slate: how far its logit falls when one field is set to missing (unknown id, default number).

Ablation one field at a time, for the final items alone. Which fields are worth it a first-order estimate says, one
gradient for all of them (serving/stages/sensitivity.py): the LOOKED_AT largest are then set to missing one by one, in
one call of the ranker, so that what is told is exact. A network that has no such gradient has all fields ablated.
Crosses and pair rates are no fields here: they are recomputed from the changed parts, so that what they contribute
counts for each of their parts.
"""

from __future__ import annotations

from typing import NamedTuple

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


class Ablation(NamedTuple):
    """One field: the columns it owns in its block, and what they hold when it is missing."""

    field: str
    of_request: bool
    id_columns: slice
    ids: np.ndarray
    dense_columns: slice
    dense: np.ndarray


class Reasons:
    """Explains the bundle's ranker: one ablation per field of user, context and item."""

    def __init__(self, bundle: LoadedBundle, features: RequestFeatures) -> None:
        self._ranker, self._features = split_ranker.of(bundle.ranker), features
        spec = bundle.spec
        self._fields = [
            *_ablations(True, spec.block_ids("request"), spec.block_dense("request"), features.missing_request),
            *_ablations(False, spec.id_slots("item"), spec.dense_slots("item"), features.missing_item),
        ]
        self._sensitivity = Sensitivity(bundle.ranker, spec, self.fields)
        nothing = features.candidate_inputs(np.array([UNKNOWN_ROW]), features.missing_request.ids)
        self._missing = features.missing_request, nothing

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
            [Reason(self._fields[fields[f]].field, float(item[f])) for f in best.tolist() if abs(item[f]) > ROUNDING]
            for item, fields, best in zip(changes, looked_at, order, strict=True)
        ]

    def changes(self, rows: np.ndarray, requester: Requester) -> np.ndarray:
        """[n, number of fields]: logit as it is minus logit without the field, in the order of `fields`."""
        candidate = self._features.candidate_inputs(rows, requester.inputs.ids)
        return self._ablated(candidate, requester, self._all(len(rows)))

    @property
    def fields(self) -> list[str]:
        """Names, in the order of `changes`."""
        return [ablation.field for ablation in self._fields]

    def _all(self, count: int) -> np.ndarray:
        return np.broadcast_to(np.arange(len(self._fields)), (count, len(self._fields)))

    def _looked_at(self, candidate: Encoded, requester: Requester) -> np.ndarray:
        """[n, LOOKED_AT] fields of each item, or all where the network cannot be asked."""
        found = None
        if len(self._fields) > LOOKED_AT:
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
        count, variants = len(items.ids), fields.shape[1] + 1
        request_ids, request_dense = (part.repeat(variants * count, axis=0) for part in requester.inputs)
        candidate_ids, candidate_dense = (np.tile(part, (variants, 1)) for part in items)
        for number in np.unique(fields):
            ablation, (which, columns) = self._fields[number], np.nonzero(fields == number)
            places = (columns + 1) * count + which
            ids, dense = (request_ids, request_dense) if ablation.of_request else (candidate_ids, candidate_dense)
            ids[places, ablation.id_columns] = ablation.ids
            dense[places, ablation.dense_columns] = ablation.dense
        self._features.write_crosses(candidate_ids, request_ids)
        return Encoded(request_ids, request_dense), Encoded(candidate_ids, candidate_dense)


def _ablations(
    of_request: bool, id_slots: list[IdSlot], dense_slots: list[DenseSlot], missing: Encoded
) -> list[Ablation]:
    """One per field, in the order of its first slot; the id slots of a field lie side by side."""
    ablations = []
    dense = {slot.field: slot.start for slot in dense_slots}
    for name in dict.fromkeys([slot.field for slot in id_slots] + list(dense)):
        own = [slot for slot in id_slots if slot.field == name]
        ids = slice(own[0].start, own[-1].start + own[-1].width) if own else slice(0, 0)
        numbers = slice(dense[name], dense[name] + 1) if name in dense else slice(0, 0)
        ablations.append(Ablation(name, of_request, ids, missing.ids[0, ids], numbers, missing.dense[0, numbers]))
    return ablations
