"""In which share of the batches a row of a fused embedding is, and what follows for its steps.

    p = 1 - exp(-n B / N)     batches of B of N rows that have a value seen n times

An optimiser that moves a row only where a batch has it takes p steps where Adam on the whole table takes one.

    penalty = strength / (2 N) * sum of squares of all rows: a Gaussian prior of precision `strength`. Spread over the
              batches that have the row, its gradient takes in each of them     strength / N / p * w
    pace    = p^(-1/2), at most MEMORY. Where a row's gradient is g in those batches and 0 in the others, Adam on the
              whole table has moments p g and p g^2, so that it moves the row by lr sqrt(p) a batch, also in those that
              lack it; what the row takes in a batch that has it is lr p^(-1/2)

The row of "unknown" counts as often as the log has it, though training drops further ids to it
(models/training/unknown_ids.py): its prior is the stronger for that, and counting them gained nothing.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from contracts.features.feature_spec import PADDING
from models.examples.batches import ExampleSet
from models.layers.embedding import FusedEmbedding
from models.layers.product_cross import FactorisedCrosses
from models.optimisation.row_adam import BETA2

MEMORY = (1.0 - BETA2) ** -0.5  # a row that comes back after Adam has forgotten it moves no further


def batch_shares(embedding: FusedEmbedding | FactorisedCrosses, examples: ExampleSet, batch_size: int) -> Tensor:
    """p of each row that the embedding's weight holds; a value never seen counts as seen once."""
    own = embedding.own
    counts = np.zeros(len(embedding.weight), dtype=np.float32)
    for name, start in embedding.columns():
        for (ids,) in examples.parts(name):
            seen, times = np.unique(ids[ids != PADDING], return_counts=True)
            mine = (start + seen) % own.step == own.start
            counts[(start + seen[mine]) // own.step] += times[mine]
    shares = torch.from_numpy(counts).clamp_(min=1.0).mul_(-batch_size / examples.rows)
    return torch.expm1(shares, out=shares).neg_()


def penalties(shares: Tensor, strength: float, rows: int) -> Tensor | None:
    """Of each row, `rows` in training; None without a penalty."""
    return strength / rows / shares if strength else None


def paces(shares: Tensor) -> Tensor:
    """Of each row, 1 to MEMORY."""
    return shares.rsqrt().clamp(max=MEMORY)
