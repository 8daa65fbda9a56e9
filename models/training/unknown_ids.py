"""In training, known ids are made unknown at random, as often as the rows to come will have unknown ones.

New users and items are the normal case, and the vector of "unknown" is learned from rows that have it. Per slot

    wanted  = max(share of validation rows whose id is unknown, FLOOR)
    dropped = (wanted - share of training rows) / (1 - share of training rows),     at least 0

so that an id which most rows of the next window lack is one that training leans on little, and one that all of them
have is kept. The slots of a side are dropped together, as they are missing together: one draw per row and side, a
cross with a part of the user by the user's draw. Lists and histories stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from contracts.features.feature_spec import UNKNOWN, BlockName, FeatureSpec, IdSlot
from models.compiled import kernels
from models.examples.batches import Batch, ExampleSet, FeatureBlock

FLOOR = 0.01
SIDES = ("user", "item", "context")
KEYED = {"categorical", "cross"}
BLOCKS: tuple[BlockName, ...] = ("request", "candidate")


def dropped_shares(spec: FeatureSpec, train: ExampleSet, validation: ExampleSet) -> dict[str, float]:
    """Of every slot of one keyed id, by the formula above."""
    return {slot.name: _dropped(slot, train, validation) for _, slot in _slots(spec)}


def _slots(spec: FeatureSpec) -> list[tuple[BlockName, IdSlot]]:
    return [(block, slot) for block in BLOCKS for slot in spec.block_ids(block)
            if slot.width == 1 and spec.by_name[slot.field].kind in KEYED]


class UnknownIds:
    """`shares`: slot -> share of its ids that is dropped, as `dropped_shares` finds them."""

    def __init__(self, spec: FeatureSpec, shares: Mapping[str, float]) -> None:
        self._request, self._candidate = (
            _Columns([slot for of, slot in _slots(spec) if of == block], shares, spec,
                     sum(slot.width for slot in spec.block_ids(block))) for block in BLOCKS)

    def __call__(self, batch: Batch) -> Batch:
        """The batch with some ids unknown; draws come from torch's global generator of the batch's device."""
        draws = torch.rand(len(batch.label), len(SIDES), device=batch.label.device)
        return batch._replace(request=self._request.dropped(batch.request, draws),
                              candidate=self._candidate.dropped(batch.candidate, draws))


class _Columns:
    """Of every column of one block, which draw decides it and its share; 0 of a column that is kept."""

    def __init__(self, slots: list[IdSlot], shares: Mapping[str, float], spec: FeatureSpec, width: int) -> None:
        self.draws, self.shares = torch.zeros(width, dtype=torch.int64), torch.zeros(width)
        for slot in slots:
            self.draws[slot.start], self.shares[slot.start] = SIDES.index(_side(slot, spec)), shares[slot.name]
        self.idle = not self.shares.any()

    def dropped(self, block: FeatureBlock, draws: Tensor) -> FeatureBlock:
        if self.idle:
            return block
        library = kernels.beside(block.ids) if block.ids.is_contiguous() and draws.is_contiguous() else None
        if library is not None:
            kept = torch.empty_like(block.ids)
            library.dropped_ids(
                block.ids.data_ptr(), *kept.shape, draws.data_ptr(), draws.shape[1], self.draws.data_ptr(),
                self.shares.data_ptr(), UNKNOWN, torch.get_num_threads(), kept.data_ptr())
            return FeatureBlock(kept, block.dense)
        self.draws, self.shares = self.draws.to(draws.device), self.shares.to(draws.device)
        gone = (draws.index_select(1, self.draws) < self.shares) & (block.ids > UNKNOWN)
        return FeatureBlock(block.ids.masked_fill(gone, UNKNOWN), block.dense)


def _side(slot: IdSlot, spec: FeatureSpec) -> str:
    if slot.side != "cross":
        return slot.side
    sides = {spec.slot(part).side for part in spec.by_name[slot.field].parts}
    return next(side for side in SIDES if side in sides)


def _dropped(slot: IdSlot, train: ExampleSet, validation: ExampleSet) -> float:
    here, there = (sum(int((ids == UNKNOWN).sum()) for (ids,) in examples.parts(slot.name)) / examples.rows
                   for examples in (train, validation))
    return max(0.0, (max(there, FLOOR) - here) / (1.0 - here)) if here < 1.0 else 0.0
