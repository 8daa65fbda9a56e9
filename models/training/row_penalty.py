"""What the rows of a fused embedding are penalised with, by how often the training window has their values.

    penalty = strength / (2 N) * sum of squares of all rows: a Gaussian prior of precision `strength`, N rows

An optimiser that moves a row only where a batch has it spreads this over those batches: in each the row's gradient
takes

    strength / N / p * w,     p = 1 - exp(-n B / N): the share of batches of B rows that have a value seen n times
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from contracts.features.feature_spec import PADDING
from models.examples.batches import ExampleSet
from models.layers.embedding import FusedEmbedding


def row_penalties(embedding: FusedEmbedding, examples: ExampleSet, strength: float, batch_size: int) -> Tensor | None:
    """[rows of the fused table]; None without a penalty."""
    if not strength:
        return None
    counts = np.zeros(len(embedding.weight))
    for reader in (embedding.request, embedding.candidate):
        for slot in reader.slots:
            ids = examples.column(slot.name)
            start = embedding.starts[slot.name]
            counts[start : start + slot.size] += np.bincount(ids[ids != PADDING], minlength=slot.size)
    share = -np.expm1(-np.maximum(counts, 1.0) * batch_size / examples.rows)
    return torch.from_numpy(strength / examples.rows / share).float()
