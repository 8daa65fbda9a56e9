"""What the kept crosses add to a pre-ranker's first layer, computed for as few rows as tell candidates apart.

Within a request a cross depends on its item parts alone, and many items share those: four tiers and five formats are
twenty combinations however many candidates there are. Crosses whose combinations stay below `FEW` together are computed
once per combination, the others once per candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from contracts.features.encoding import Encoded, Encoder
from contracts.features.feature_spec import FeatureSpec
from contracts.features.vocabulary import Vocabulary
from models.examples.batches import FeatureBlock
from models.preranking.fscd_scorer import FscdSplit
from serving.bundle.feature_store import UNKNOWN_ROW, FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.given_items import GivenItems
from serving.request.request_features import RequestFeatures, block

FEW = 256  # combinations


class RequestCrosses:
    """`grouped` False computes every cross once per candidate, as if the item table could change with each request."""

    def __init__(self, bundle: LoadedBundle, split: FscdSplit, grouped: bool = True) -> None:
        ids = np.asarray(bundle.items.ids)
        ids = ids if bundle.items.stored == len(ids) - 1 else np.concatenate([ids[: bundle.items.stored], ids[-1:]])
        few, first, group = _grouped(split, ids) if grouped else ((), np.empty(0), np.empty(0))
        many = [name for name in split.crosses if name not in few]
        self._few = _Crosses(_of_groups(bundle, first, ids), split, few) if few else None
        self._many = _Crosses(bundle, split, many) if many else None
        self._groups, self._group = np.arange(len(first)), group

    def of(self, inputs: Encoded, user: Tensor, given: GivenItems | None = None) -> Callable[[np.ndarray], Tensor]:
        """What gives [K, H] of item rows [K]: the user's part [1, H] and the crosses. `given` items belong to no
        group."""
        requester = block(inputs)
        base = user if self._few is None else user + self._few(self._groups, inputs, requester)

        def add(rows: np.ndarray) -> Tensor:
            known = base if self._few is None else base.index_select(0, torch.from_numpy(self._group.take(rows)))
            return known if self._many is None else known + self._many(rows, inputs, requester, given)

        return add


class _Crosses:
    """Some crosses of item rows with a requester: ids by the encoder, then their part of the first layer."""

    def __init__(self, bundle: LoadedBundle, split: FscdSplit, names: tuple[str, ...] | list[str]) -> None:
        spec, self._part = split.cross_part(names)
        self._features = RequestFeatures(narrowed(bundle, spec))

    def __call__(
        self, rows: np.ndarray, inputs: Encoded, requester: FeatureBlock, given: GivenItems | None = None
    ) -> Tensor:
        """[K, H]."""
        return self._part(block(self._features.candidate_inputs(rows, inputs.ids, given)), requester.ids)


def narrowed(bundle: LoadedBundle, spec: FeatureSpec) -> LoadedBundle:
    """The bundle as if it had the fields of `spec` alone, for a network that reads no others, and as it was made."""
    return replace(bundle, spec=spec, encoder=Encoder(spec, bundle.encoder.vocabularies), live=())


def _of_groups(bundle: LoadedBundle, first: np.ndarray, ids: np.ndarray) -> LoadedBundle:
    """The bundle as if it had the `first` item of each group alone, with its `ids` as they were grouped: what it
    changes to is not what its group has. The row behind the stored ones is the unknown item's."""
    dense = bundle.items.dense[np.where(first < bundle.items.stored, first, UNKNOWN_ROW)]
    return replace(bundle, items=FeatureStore(Vocabulary.of((), "string"), ids[first], dense))


def _grouped(split: FscdSplit, ids: np.ndarray) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Crosses taken in while the distinct rows of all their item parts stay few; a row of each group, group of each."""
    places = {slot.name: range(slot.start, slot.start + slot.width) for slot in split.spec.id_slots("item")}
    columns = {name: {column for part in split.network.spec.by_name[name].parts for column in places.get(part, ())}
               for name in split.crosses}
    taken: tuple[str, ...] = ()
    together: set[int] = set()
    first, group = np.zeros(1, dtype=np.int64), np.zeros(len(ids), dtype=np.int64)
    for name in sorted(columns, key=lambda name: len(_distinct(ids, columns[name])[0])):
        found = _distinct(ids, together | columns[name])
        if len(found[0]) <= FEW:
            taken, together, (first, group) = (*taken, name), together | columns[name], found
    return taken, first, group


def _distinct(ids: np.ndarray, columns: set[int]) -> tuple[np.ndarray, np.ndarray]:
    """A row of each distinct combination, and the combination of each row; the last row stands for row -1."""
    if not columns:
        return np.zeros(1, dtype=np.int64), np.zeros(len(ids), dtype=np.int64)
    _, first, group = np.unique(ids[:, sorted(columns)], axis=0, return_index=True, return_inverse=True)
    return first, group.reshape(-1)
