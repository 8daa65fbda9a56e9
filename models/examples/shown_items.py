"""Every item that some windows show, with its columns as last shown: the catalogue as the item tower reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from contracts.features.feature_spec import UNKNOWN, IdSlot
from models.examples.batches import ExampleSet, FeatureBlock

BATCH = 65_536


class ShownItems(NamedTuple):
    """ids [N] ascending; columns of the item side [N, ...]; impressions [N]."""

    ids: Tensor
    columns: FeatureBlock
    impressions: Tensor

    def draw(self, number: int, device: torch.device) -> tuple[Tensor, FeatureBlock]:
        """ids [number] and their columns, every item alike, with replacement, by torch's global generator."""
        place = torch.randint(len(self.ids), (number,))
        return self.ids[place].to(device), FeatureBlock(*(part[place].to(device) for part in self.columns))


def shown_items(windows: Sequence[ExampleSet], slot: IdSlot | None) -> ShownItems:
    """Windows in time order; `slot` names the item, without it there are none. Padding and unknown items are left out.
    """
    spec, (start, rows) = windows[0].spec, (slot.start, slot.size) if slot else (0, 0)
    columns = FeatureBlock(torch.zeros(rows, spec.id_width("item"), dtype=torch.int32),
                           torch.zeros(rows, len(spec.dense_slots("item"))))
    impressions = torch.zeros(rows, dtype=torch.int64)
    for batch in (batch for window in windows for batch in window.batches(BATCH)) if slot else ():
        item = batch.candidate.ids[:, start].long()
        shown, last = _last_rows(item, rows)
        for part, of in zip(columns, batch.candidate, strict=True):
            part[shown] = of[last, : part.shape[1]]
        impressions += torch.bincount(item, minlength=rows)
    known = torch.arange(rows)[(impressions > 0) & (torch.arange(rows) > UNKNOWN)]
    return ShownItems(known, FeatureBlock(*(part[known] for part in columns)), impressions[known])


def _last_rows(item: Tensor, items: int) -> tuple[Tensor, Tensor]:
    """(each item of the batch once, its last row); assigning to repeated places would keep any of them."""
    last = torch.full((items,), -1).scatter_reduce_(0, item, torch.arange(len(item)), "amax")
    shown = (last >= 0).nonzero().squeeze(1)
    return shown, last[shown]
