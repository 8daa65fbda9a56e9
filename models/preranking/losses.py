"""What a pre-ranker learns from the ranker on lists of candidates; every loss is a mean in nats.

    distillation   -p log q - (1 - p) log(1 - q),  p, q = sigmoid of the ranker's and the pre-ranker's logits
    consistency    sum_{a < b} w_ab softplus(s_b - s_a) / sum w_ab, over candidates whose chunks a, b differ
                   w_ab = |G_a - G_b| |1 / log2(1 + a) - 1 / log2(1 + b)|,  G_a = 2^(chunks - a) - 1 over its largest

The second is COPR's chunk-wise consistency with weights from NDCG (arXiv 2306.03516): the list is cut into chunks of
`CHUNK` in the ranker's order, chunk 1 first, and the order within a chunk does not matter.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 8


def distillation(scores: Tensor, teacher: Tensor, valid: Tensor) -> Tensor:
    """Logits [R, K], bool [R, K]."""
    terms = F.binary_cross_entropy_with_logits(scores, teacher.sigmoid(), reduction="none")
    return terms[valid].mean()


def consistency(scores: Tensor, teacher: Tensor, valid: Tensor) -> Tensor:
    """Logits [R, K], bool [R, K]. 0 where no list spans two chunks."""
    weights = chunk_weights(scores.shape[1]).to(scores.device)
    order = teacher.masked_fill(~valid, -torch.inf).argsort(dim=1, descending=True, stable=True)
    ranked, real = scores.gather(1, order), valid.gather(1, order)
    pairs = weights * (real[:, :, None] & real[:, None, :])
    loss = F.softplus(ranked[:, None, :] - ranked[:, :, None])
    return (pairs * loss).sum() / pairs.sum().clamp(min=1e-12)


@cache
def chunk_weights(count: int) -> Tensor:
    """w [K, K] of a list in the ranker's order; 0 unless the column's chunk comes behind the row's."""
    chunk = torch.arange(count) // CHUNK + 1
    chunks = float(chunk[-1])
    gain = torch.exp2(-(chunk - 1).float()) - 2.0**-chunks
    discount = 1.0 / torch.log2(1.0 + chunk)
    weights = (gain[:, None] - gain[None]).abs() * (discount[:, None] - discount[None]).abs()
    return weights * (chunk[:, None] < chunk[None])
