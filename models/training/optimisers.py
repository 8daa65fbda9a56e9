"""Who moves what: AdamW the dense parameters, RowAdam the fused embeddings, after one clipping of all gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from contracts.config.training import Train
from models.examples.batches import ExampleSet
from models.layers.embedding import FusedEmbedding
from models.training.row_adam import RowAdam
from models.training.row_shares import batch_shares, paces, penalties


class Optimisers:
    """`trained` are the modules whose parameters move; a parameter that takes no gradient now stays as it is.

    `parameters` are all of them, `dense` those of AdamW.
    """

    def __init__(self, trained: Sequence[nn.Module], settings: Train) -> None:
        self.clip_norm = settings.clip_norm
        self.parameters = [p for module in trained for p in module.parameters() if p.numel() and p.requires_grad]
        self.embeddings = [m for part in trained for m in part.modules() if isinstance(m, FusedEmbedding)]
        tables = [embedding.weight for embedding in self.embeddings]
        self.dense = [p for p in self.parameters if not any(p is table for table in tables)]
        rate, decay = settings.learning_rate, settings.weight_decay
        self.row_adams = [RowAdam(table, rate, decay) for table in tables]
        self.adam = torch.optim.AdamW(self.dense, lr=rate, weight_decay=decay, fused=True) if self.dense else None
        self._rate = rate

    @property
    def learning_rate(self) -> float:
        return self._rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._rate = rate
        for group in self.adam.param_groups if self.adam else ():
            group["lr"] = rate
        for row_adam in self.row_adams:
            row_adam.learning_rate = rate

    def weigh_rows(self, train: ExampleSet, strength: float, batch_rows: int, paced: bool = True) -> None:
        """Gives the rows of the embeddings their penalty and pace, by how often the training window has them.

        Not `paced` are those of a linear model: a weight there is an effect, and one row must not make it large.
        """
        for embedding, adam in zip(self.embeddings, self.row_adams, strict=True):
            shares = batch_shares(embedding, train, batch_rows).to(adam.weight.device)
            adam.l2 = penalties(shares, strength, train.rows)
            adam.pace = paces(shares) if paced else None

    def step(self) -> None:
        """One update by the gradients that the parameters hold."""
        dense = [p.grad for p in self.dense if p.grad is not None]
        sparse = [(adam, found) for adam in self.row_adams if (found := adam.gradient()) is not None]
        parts = [*dense, *(gradient.values for _, gradient in sparse)]
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(parts)))
        torch._foreach_mul_(parts, (self.clip_norm / (norm + 1e-6)).clamp(max=1.0))
        if self.adam:
            self.adam.step()
        for row_adam, gradient in sparse:
            row_adam.step(*gradient)
