"""Why an item is in the slate: how far its logit falls when one field is set to missing (unknown id, default number).

Ablation one field at a time, for the final items alone. Which fields are worth it a first-order estimate says, one
gradient for all of them (serving/stages/sensitivity.py): the LOOKED_AT largest are then set to missing one by one, in
one call of the ranker, so that what is told is exact. Of a DNN both are read from its first layer
(models/inference/field_deltas.py), without a second pass through it. A network that has no such gradient has all fields
ablated.
Crosses and pair rates are no fields here: they are recomputed from the changed parts, so that what they contribute
counts for each of their parts.
"""

from __future__ import annotations

import numpy as np

from contracts.features.encoding import Encoded
from contracts.features.feature_spec import DenseSlot, FeatureSpec, IdSlot
from models.inference.field_deltas import FieldDeltas
from models.inference.split_ranker import BegunDnn, SplitDnn
from serving.bundle.feature_store import UNKNOWN_ROW
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.given_items import GivenItems
from serving.request.query import Fallback, Reason, StageReport, StageStatus
from serving.request.request_features import Requester, RequestFeatures
from serving.stages.rank import RankStage
from serving.stages.sensitivity import Sensitivity, input_columns

TOP = 3
LOOKED_AT = 6  # fields per item
ROUNDING = 1e-5  # rows of one call may round differently; a smaller change is none


class Reasons:
    """Explains what `rank` ranks, the bundle's own where none is given: one ablation per field of user, context and
    item. `fields` are their names, in the order of `changes`."""

    def __init__(self, bundle: LoadedBundle, features: RequestFeatures, rank: RankStage | None = None) -> None:
        spec = bundle.spec
        self._rank, self._features = rank or RankStage(bundle, features), features
        self._ranker = self._rank.ranker
        request = _owners(spec.block_ids("request"), spec.block_dense("request"))
        items = _owners(spec.id_slots("item"), spec.dense_slots("item"))
        self.fields = [*request, *items]
        nothing = features.candidate_inputs(np.array([UNKNOWN_ROW]), features.missing_request.ids)
        self._missing = features.missing_request, nothing
        self._owned = _masks(request, self._missing[0], 0, len(items)), _masks(items, nothing, len(request), 0)
        self._sensitivity = Sensitivity(bundle.ranker, spec, self.fields, self._ranker)
        self._dnn = self._ranker if type(self._ranker) is SplitDnn else None
        if self._dnn is not None:
            self._deltas = FieldDeltas(
                self._dnn, self.fields, input_columns(self._dnn.inputs.embedding, spec),
                self._sensitivity.owners[1].numpy(), self._missing)
            self._joined = self._beyond_own_columns(spec, self._dnn.inputs.prior_column)

    def top(
        self, rows: np.ndarray, requester: Requester, given: GivenItems | None = None
    ) -> list[list[Reason]]:
        """Per item of `rows` [n], up to three fields with the largest changes, without those that change nothing."""
        if not len(rows):
            return []
        candidate = self._features.candidate_inputs(rows, requester.inputs.ids, given)
        if self._dnn is None:
            looked_at = self._looked_at(candidate, requester)
            changes = self._ablated(candidate, requester, looked_at)
        else:
            looked_at, changes = self._by_first_layer(self._dnn, candidate, requester)
        best = np.arange(len(rows))[:, None], _largest(changes, TOP)
        told, names = changes[best].tolist(), looked_at[best].tolist()
        return [[Reason(self.fields[field], change) for field, change in zip(fields, item, strict=True)
                 if abs(change) > ROUNDING] for fields, item in zip(names, told, strict=True)]

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
            found = self._sensitivity.changes(requester.inputs, candidate, self._missing, self._rank.begun(requester))
        if found is None:
            return self._all(len(candidate.ids))
        return _largest(found, LOOKED_AT)

    def _by_first_layer(
        self, dnn: SplitDnn, items: Encoded, requester: Requester
    ) -> tuple[np.ndarray, np.ndarray]:
        """[n, m] fields of each item, and by how much its logit exceeds the one without the field."""
        begun = self._rank.begun(requester)
        assert isinstance(begun, BegunDnn)
        first = self._deltas.of(begun, items)
        fields = _largest(first.estimates, LOOKED_AT)
        item, field = _pairs(fields)
        priors = np.zeros(len(items.ids), dtype=np.float32) + dnn.inputs.prior(items.ids)
        hidden, without = first.without(item, field), priors[item]
        joined = self._joined[field].nonzero()[0]
        if len(joined):
            request, candidate = self._variant_ids(items.ids, requester.inputs.ids, item[joined], field[joined])
            hidden[joined] += dnn.crossed(request, candidate) - first.crossed[item[joined]]
            without[joined] = dnn.inputs.prior(candidate)
        changed = dnn.mlp.after_first(hidden)[:, 0] + without
        return fields, ((first.logits + priors)[item] - changed).reshape(fields.shape).astype(np.float64)

    def _beyond_own_columns(self, spec: FeatureSpec, prior: int | None) -> np.ndarray:
        """bool [F]: fields without which more changes than their own columns, a cross or the item's prior."""
        found = np.zeros(len(self.fields), dtype=bool) if prior is None else self._owned[1][0][:, prior].copy()
        for part in (part for field in spec.fields for part in field.parts):
            found[self.fields.index(part if part in self.fields else spec.slot(part).field)] = True
        return found

    def _ablated(self, items: Encoded, requester: Requester, fields: np.ndarray) -> np.ndarray:
        """[n, m] of fields [n, m]: by how much the logit of each item exceeds the one without the field."""
        item, field = _pairs(fields)
        request, candidate = self._variants(items, requester.inputs, item, field)
        first = Encoded(*(part.repeat(len(items.ids), axis=0) for part in requester.inputs))
        logits = self._ranker.logits(self._ranker.begin(_stacked(first, request)), _stacked(items, candidate))
        whole, changed = logits[: len(items.ids)], logits[len(items.ids) :]
        return (whole[item] - changed).reshape(fields.shape).astype(np.float64)

    def _variants(
        self, items: Encoded, request: Encoded, item: np.ndarray, field: np.ndarray
    ) -> tuple[Encoded, Encoded]:
        """Both blocks of pairs [k]: an item of `items`, and the field that is not known."""
        ids = self._variant_ids(items.ids, request.ids, item, field)
        dense = self._without(1, field, request.dense, items.dense.take(item, axis=0))
        return Encoded(ids[0], dense[0]), Encoded(ids[1], dense[1])

    def _variant_ids(
        self, items: np.ndarray, request: np.ndarray, item: np.ndarray, field: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The ids of both, crosses among them."""
        request, candidate = self._without(0, field, request, items.take(item, axis=0))
        self._features.write_crosses(candidate, request)
        return request, candidate

    def _without(
        self, part: int, field: np.ndarray, request: np.ndarray, candidate: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ids (part 0) or numbers (part 1) of both blocks where a field [k] each is not known."""
        left, right = (np.where(owned[part].take(field, axis=0), missing[part], known) for owned, missing, known in
                       zip(self._owned, self._missing, (request, candidate), strict=True))
        return left, right


def _largest(changes: np.ndarray, count: int) -> np.ndarray:
    """[n, up to `count`] of [n, F]."""
    return np.argsort(-np.abs(changes), axis=1, kind="stable")[:, :count]


def _pairs(fields: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Items and fields [n x m] of fields [n, m]."""
    return np.arange(len(fields)).repeat(fields.shape[1]), fields.reshape(-1)


def _stacked(first: Encoded, then: Encoded) -> Encoded:
    return Encoded(*(np.concatenate(parts) for parts in zip(first, then, strict=True)))


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


def without_reasons(count: int, cause: str, wanted: bool) -> tuple[list[list[Reason]], StageReport]:
    """Of a slate of so many items, and the stage's report."""
    fallback = Fallback.WITHOUT_REASONS if wanted else Fallback.NONE
    return [[] for _ in range(count)], StageReport("explain", count, count, 0, StageStatus.SKIPPED, cause, fallback)
