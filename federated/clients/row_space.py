"""Which rows a model has, which of them a client uses, and the smaller model that knows only some of them.

Place p of the space is row p + 1 of the fused embedding table (models/layers/embedding.py), whose row 0 is padding.
Tables of up to `public_up_to` ids, bins of numbers and the id "unknown" are public: they are in every submodel, and
using them tells little. All other rows are private.

A submodel is the same network over a spec whose private tables have shrunk: its fused table is the padding row and the
rows of its places in order, so rows are copied in and out without a map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from contracts.errors import ConfigError
from contracts.features.feature_spec import FIRST_ID, PADDING, UNKNOWN, FeatureSpec, IdSlot
from federated.protocol.plan import places_in
from models.examples.batches import Batch, FeatureBlock
from models.layers.embedding import item_slot


def first_places(spec: FeatureSpec) -> dict[str, int]:
    """Table -> place of its id 1."""
    starts, place = {}, 0
    for table, size in spec.tables().items():
        starts[table] = place
        place += size - 1
    return starts


def place_count(spec: FeatureSpec) -> int:
    """Rows of all tables together, without those of padding."""
    return sum(size - 1 for size in spec.tables().values())


@dataclass(frozen=True)
class RowSpace:
    """`spec` as clients have it; tables of up to `public_up_to` ids are public."""

    spec: FeatureSpec
    public_up_to: int

    @cached_property
    def first(self) -> dict[str, int]:
        """Table -> place of its id 1."""
        return first_places(self.spec)

    @property
    def size(self) -> int:
        """How many places there are."""
        return place_count(self.spec)

    @cached_property
    def private_tables(self) -> list[str]:
        """Tables of more than `public_up_to` ids that hold no bins of numbers."""
        numbers = {table for field in self.spec.fields if field.dense for _, table, _ in field.slots()}
        return [t for t, size in self.spec.tables().items() if size > self.public_up_to and t not in numbers]

    def private_ranges(self) -> tuple[tuple[int, int], ...]:
        """[start, stop) of the private places of each private table."""
        tables = self.spec.tables()
        return tuple((self.first[t] + FIRST_ID - 1, self.first[t] + tables[t] - 1) for t in self.private_tables)

    @cached_property
    def private_places(self) -> np.ndarray:
        """int64, sorted."""
        return places_in(self.private_ranges())

    def held(self, batch: Batch) -> np.ndarray:
        """Sorted private places that these samples use."""
        return np.intersect1d(self.places(batch), self.private_places)

    def places(self, batch: Batch) -> np.ndarray:
        """int64 [B, W] the place that each id of a row uses, -1 for padding; request block first."""
        blocks = [(batch.request, self.spec.block_ids("request")), (batch.candidate, self.spec.block_ids("candidate"))]
        columns = [self._slot_places(block, slot) for block, slots in blocks for slot in slots]
        return np.concatenate(columns, axis=1) if columns else np.empty((len(batch.label), 0), dtype=np.int64)

    def _slot_places(self, block: FeatureBlock, slot: IdSlot) -> np.ndarray:
        ids = block.ids[:, slot.start : slot.start + slot.width].numpy().astype(np.int64)
        return np.where(ids == PADDING, -1, self.first[slot.table] + ids - 1)

    def kept_ids(self, places: np.ndarray) -> dict[str, np.ndarray]:
        """Private table -> sorted ids (from 2) whose rows are among the sorted places."""
        kept = {}
        for table, (start, stop) in zip(self.private_tables, self.private_ranges(), strict=True):
            low, high = np.searchsorted(places, (start, stop))
            kept[table] = places[low:high] - start + FIRST_ID
        return kept

    def submodel_spec(self, kept: dict[str, np.ndarray]) -> FeatureSpec:
        """The spec whose private tables hold the kept ids alone."""
        fields = [
            field.model_copy(update={"size": FIRST_ID + len(kept[table])})
            if not field.dense and (table := field.vocabulary or field.name) in kept else field
            for field in self.spec.fields
        ]
        return self.spec.model_copy(update={"fields": tuple(fields)})

    def narrowed(self, batch: Batch, kept: dict[str, np.ndarray]) -> Batch:
        """The samples in the submodel's ids, without those whose target item it lacks.

        A lost entry of a history or list is padding, any other lost value is unknown.
        """
        here = torch.ones(len(batch.label), dtype=torch.bool)
        target = item_slot(self.spec)
        request, candidate = batch.request.ids.clone(), batch.candidate.ids.clone()
        for ids, slots in ((request, self.spec.block_ids("request")), (candidate, self.spec.block_ids("candidate"))):
            for slot in slots:
                if slot.table not in kept:
                    continue
                span = slice(slot.start, slot.start + slot.width)
                mapped = self._lookup(slot, kept[slot.table])[ids[:, span].long()]
                if target is not None and slot.name == target.name:
                    here &= (mapped[:, 0] != UNKNOWN) | (ids[:, slot.start] == UNKNOWN)
                ids[:, span] = mapped
        moved = batch._replace(request=FeatureBlock(request, batch.request.dense),
                               candidate=FeatureBlock(candidate, batch.candidate.dense))
        return moved.take(here.nonzero().squeeze(1))

    @staticmethod
    def _lookup(slot: IdSlot, kept: np.ndarray) -> torch.Tensor:
        table = np.full(slot.size, PADDING if slot.width > 1 or slot.sequence else UNKNOWN, dtype=np.int32)
        table[PADDING], table[UNKNOWN] = PADDING, UNKNOWN
        table[kept] = np.arange(FIRST_ID, FIRST_ID + len(kept))
        return torch.from_numpy(table)


def require_federable(spec: FeatureSpec) -> None:
    """Raises ConfigError on inputs that no client can compute or that name it."""
    bad = [field.name for field in spec.fields if field.kind in ("counter", "statistic") or field.product]
    if bad:
        raise ConfigError(
            f"fields {bad} need counts over all users (or products of crosses), which no client has; leave them out "
            "with federated.fields"
        )
