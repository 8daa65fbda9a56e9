"""Why an item is in the slate: how far its logit falls when one field is set to missing (unknown id, default number).

Ablation one field at a time, for the final items alone: all (item, field) variants and the unchanged items go through
the ranker in one call. Crosses and pair rates are no fields here: they are recomputed from the changed parts,
so that what they contribute counts for each of their parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contracts.features.encoding import Encoded
from contracts.features.feature_spec import DenseSlot, IdSlot
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.query import Reason
from serving.request.request_features import Requester, RequestFeatures, block

TOP = 3
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
        self._ranker = bundle.ranker
        self._features = features
        spec = bundle.spec
        self._fields = [
            *_ablations(True, spec.block_ids("request"), spec.block_dense("request"), features.missing_request),
            *_ablations(False, spec.id_slots("item"), spec.dense_slots("item"), features.missing_item),
        ]

    def top(self, rows: np.ndarray, requester: Requester) -> list[list[Reason]]:
        """Per item of `rows` [n], up to three fields with the largest changes, without those that change nothing."""
        if not len(rows):
            return []
        changes = self.changes(rows, requester)
        order = np.argsort(-np.abs(changes), axis=1, kind="stable")[:, :TOP]
        return [
            [Reason(self._fields[f].field, float(item[f])) for f in best.tolist() if abs(item[f]) > ROUNDING]
            for item, best in zip(changes, order, strict=True)
        ]

    def changes(self, rows: np.ndarray, requester: Requester) -> np.ndarray:
        """[n, number of fields]: logit as it is minus logit without the field, in the order of `fields`."""
        request, candidate = self._variants(rows, requester)
        logits = self._ranker(block(request), block(candidate)).numpy().reshape(len(self._fields) + 1, len(rows))
        return (logits[0] - logits[1:]).T.astype(np.float64)

    @property
    def fields(self) -> list[str]:
        """Names, in the order of `changes`."""
        return [ablation.field for ablation in self._fields]

    def _variants(self, rows: np.ndarray, requester: Requester) -> tuple[Encoded, Encoded]:
        """Both blocks for variant 0 (unchanged) and one variant per field, each over all items."""
        count, variants = len(rows), len(self._fields) + 1
        candidate = self._features.candidate_inputs(rows, requester.inputs.ids)
        request_ids, request_dense = (part.repeat(variants * count, axis=0) for part in requester.inputs)
        candidate_ids, candidate_dense = (np.tile(part, (variants, 1)) for part in candidate)
        for variant, ablation in enumerate(self._fields, start=1):
            span = slice(variant * count, (variant + 1) * count)
            ids, dense = (request_ids, request_dense) if ablation.of_request else (candidate_ids, candidate_dense)
            ids[span, ablation.id_columns] = ablation.ids
            dense[span, ablation.dense_columns] = ablation.dense
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
