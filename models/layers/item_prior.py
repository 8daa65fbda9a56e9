"""How popular the item is, in logits, added to what a network says: the network corrects popularity and starts at it.

    prior(i) = logit((clicks_i + S r) / (n_i + S)) - logit((expected_i + S r) / (n_i + S)),   S = STRENGTH

over the training window; r the overall click rate, expected_i what rows shown in the item's positions get on average
(n_i r in a log without positions), so that an item is not held to be bad for having been shown low. An item never
seen has the rate of the rows whose item is unknown, and 0 where there are none. What popular items were drawn more
often for positives is added again.

Where a counter of the item's side is among the fields the prior stays 0: a counter says what was known of the item at
the time, while the whole window's count contains the row's own label and is stale when the window has ended. Damped
twenty times as much it gains GAUC and loses slates (benchmarks/RESULTS.md, 2026-11-27).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from contracts.artifacts import DRAWS, LABEL, POSITION
from contracts.features.feature_spec import FeatureSpec, IdSlot
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import item_slot

STRENGTH = 20.0  # impressions at the expected rate


class ItemCounts(NamedTuple):
    """float64 [items] each: rows, clicks, and the sum of ln(draws)."""

    shown: np.ndarray
    clicks: np.ndarray
    draws: np.ndarray

    def log_draws(self) -> np.ndarray:
        """The mean ln(draws) of an item's rows over that of all rows; 0 of an item without rows."""
        mean = self.draws.sum() / self.shown.sum()
        return (self.draws - mean * self.shown) / np.maximum(self.shown, 1)


def item_counts(examples: ExampleSet, slot: IdSlot | None) -> ItemCounts:
    """Of the ids of the slot; without one all rows are of one item."""
    size = slot.size if slot else 1
    counts = np.zeros((3, size))
    names = [LABEL, *([slot.name] if slot else []), *([DRAWS] if examples.drawn else [])]
    for labels, *rest in examples.parts(*names):
        ids = rest[0] if slot else np.zeros(len(labels), dtype=np.int64)
        draws = np.log(rest[-1]) if examples.drawn else np.zeros(len(labels))
        counts += [np.bincount(ids, weights=weights, minlength=size) for weights in (None, labels, draws)]
    return ItemCounts(*counts)


class ItemPrior(nn.Module):
    """Without a categorical field of the item, or with a counter of it, the prior is 0; so it is until `start_at` has
    counted. Not trained."""

    logit: Tensor

    def __init__(self, spec: FeatureSpec) -> None:
        super().__init__()
        self.slot = item_slot(spec)
        self.has_position = spec.has_position
        self.counted_already = any(field.kind == "counter" for field in spec.of_side("item"))
        self.register_buffer("logit", torch.zeros(self.slot.size if self.slot else 0))

    def start_at(self, examples: ExampleSet) -> None:
        """Counts the training window."""
        if self.slot is None or self.counted_already:
            return
        found = item_counts(examples, self.slot)
        overall = found.clicks.sum() / found.shown.sum()
        expected = _expected(examples, self.slot) if self.has_position else found.shown * overall
        rate, usual = ((counts + STRENGTH * overall) / (found.shown + STRENGTH) for counts in (found.clicks, expected))
        of_all = np.log(rate) - np.log1p(-rate) - np.log(usual) + np.log1p(-usual) + found.log_draws()
        self.logit.copy_(torch.from_numpy(of_all))

    def forward(self, candidate: FeatureBlock) -> Tensor:
        """candidate of B rows -> logits [B]; 0 [1] without an item."""
        if self.slot is None:
            return candidate.dense.new_zeros(1)
        return self.logit[candidate.ids[:, self.slot.start].long()]


def _expected(examples: ExampleSet, slot: IdSlot) -> np.ndarray:
    """Clicks of each item's rows if each was clicked as often as its position is."""
    sums: dict[int, np.ndarray] = {}
    for positions, labels in examples.parts(POSITION, LABEL):
        places, inverse = np.unique(positions, return_inverse=True)
        counts = np.stack([np.bincount(inverse), np.bincount(inverse, weights=labels)], axis=1)
        sums |= {place: sums.get(place, 0.0) + count for place, count in zip(places.tolist(), counts, strict=True)}
    known = np.array(sorted(sums))
    rates = np.array([sums[place][1] / sums[place][0] for place in known.tolist()])
    expected = np.zeros(slot.size)
    for ids, positions in examples.parts(slot.name, POSITION):
        expected += np.bincount(ids, weights=rates[np.searchsorted(known, positions)], minlength=slot.size)
    return expected
