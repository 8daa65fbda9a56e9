"""How popular the item is, in logits, added to what a network says: the network corrects popularity and starts at it.

    prior(i) = logit((clicks_i + S r) / (n_i + S)) - logit((expected_i + S r) / (n_i + S)),   S = STRENGTH

over the training window; r the overall click rate, expected_i what rows shown in the item's positions get on average
(n_i r in a log without positions), so that an item is not held to be bad for having been shown low. An item never
seen has the rate of the rows whose item is unknown, and 0 where there are none. What popular items were drawn more
often for positives is added again.

Where a counter of the item's side is among the fields the prior stays 0: a counter says what was known of the item at
the time, while the whole window's count contains the row's own label and is stale when the window has ended.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from contracts.artifacts import LABEL, POSITION
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import item_slot

STRENGTH = 20.0  # impressions at the expected rate


def item_log_draws(examples: ExampleSet, ids: np.ndarray, size: int) -> np.ndarray:
    """float64 [size]: the mean ln(draws) of an item's rows over that of all rows; 0 of an item without rows."""
    draws = examples.log_draws()
    return np.bincount(ids, draws - draws.mean(), size) / np.maximum(np.bincount(ids, minlength=size), 1)


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
        ids, labels = examples.column(self.slot.name), examples.column(LABEL).astype(np.float64)
        shown, clicks, expected = (np.bincount(ids, weights=weights, minlength=len(self.logit))
                                   for weights in (None, labels, self._expected(examples, labels)))
        rate, usual = ((counts + STRENGTH * labels.mean()) / (shown + STRENGTH) for counts in (clicks, expected))
        drawn = item_log_draws(examples, ids, len(shown))
        self.logit.copy_(torch.from_numpy(np.log(rate) - np.log1p(-rate) - np.log(usual) + np.log1p(-usual) + drawn))

    def _expected(self, examples: ExampleSet, labels: np.ndarray) -> np.ndarray:
        """[N] the mean label of each row's position."""
        if not self.has_position:
            return np.full(len(labels), labels.mean())
        _, position = np.unique(examples.column(POSITION), return_inverse=True)
        return (np.bincount(position, weights=labels) / np.bincount(position))[position]

    def forward(self, candidate: FeatureBlock) -> Tensor:
        """candidate of B rows -> logits [B]; 0 [1] without an item."""
        if self.slot is None:
            return candidate.dense.new_zeros(1)
        return self.logit[candidate.ids[:, self.slot.start].long()]
