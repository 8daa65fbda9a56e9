"""Trains FSCD where it will sit: on retrieved candidates with the ranker as teacher, and on the clicks of impressions.

    loss = click_loss_weight * log loss of impressions + distillation * ... + consistency * ...   (preranking/losses.py)
           + reg_scale * sum_j c_j delta_j                                                        (with gates)

Every term is a mean per sample, so that `reg_scale`, in nats per unit of cost, means the same at any batch size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from contracts.bundle.candidate_lists import CandidateItems, CandidateLists
from contracts.config.stages import Prerank
from models.examples.batches import Batch
from models.examples.in_memory import ArrayExamples
from models.layers.losses import as_drawn
from models.layers.position_bias import PositionBias
from models.optimisation.row_adam import RowAdam
from models.preranking.candidate_batches import ListBatch, batch, drawn
from models.preranking.concrete_gates import Gates
from models.preranking.fscd import Fscd
from models.preranking.losses import consistency, distillation

CLICKS_SHARE = 4  # an impression for every so many candidates of a step
WEIGHT_DECAY = 1e-5


@dataclass(frozen=True)
class Sources:
    """What pre-rankers learn from. `impressions` is None where only the teacher speaks."""

    items: CandidateItems
    lists: CandidateLists
    impressions: ArrayExamples | None


class Trainer:
    """Keeps optimiser state and the order of the data; one seed gives one result."""

    def __init__(self, network: Fscd, gates: Gates | None, sources: Sources, settings: Prerank, seed: int,
                 positions: int = 0) -> None:
        self.network, self.gates, self.sources, self.settings = network, gates, sources, settings
        self.bias = PositionBias(positions if sources.impressions else 0)
        if sources.impressions:
            self.bias.start_at(sources.impressions)
        self.rng = np.random.default_rng(seed)
        self.noise = torch.Generator().manual_seed(seed)
        table = network.embedding.weight
        dense = [p for p in [*network.parameters(), *self.bias.parameters()] if p is not table and p.numel()]
        self.row_adam = RowAdam(table, settings.learning_rate, WEIGHT_DECAY)
        self.adam = torch.optim.AdamW(dense, lr=settings.learning_rate, weight_decay=WEIGHT_DECAY)
        self.gate_adam = torch.optim.Adam(gates.parameters(), lr=settings.gate_learning_rate) if gates else None
        self._clicks = self._impressions()

    def run(self, steps: int, reg_scale: float | None = None, decay: bool = False) -> float:
        """The mean loss of the last tenth. Without `reg_scale` gates stay as they are, and the network learns to do
        without any field; `decay` lets the learning rate fall to zero."""
        self.network.train()
        losses = []
        for step in range(steps):
            self._set_rate(self.settings.learning_rate * (1.0 - step / steps if decay else 1.0))
            losses.append(self._step(reg_scale))
        self.network.eval()
        return float(np.mean(losses[-max(steps // 10, 1):])) if losses else 0.0

    def _set_rate(self, rate: float) -> None:
        self.row_adam.learning_rate = self.adam.param_groups[0]["lr"] = rate

    def _step(self, reg_scale: float | None) -> float:
        gates = self.gate_adam if reg_scale is not None else None
        self.adam.zero_grad()
        if gates:
            gates.zero_grad()
        losses = self._losses()
        if gates and self.gates is not None and reg_scale is not None:
            losses[0] = losses[0] + reg_scale * self.gates.penalty()
        rows = self._row_gradients(losses)
        self.adam.step()
        if rows:
            self.row_adam.step(*self.row_adam.summed(*(torch.cat(parts) for parts in zip(*rows, strict=True))))
        if gates and self.gates is not None:
            gates.step()
            self.gates.clamp()
        return float(sum(loss.detach() for loss in losses))

    def _row_gradients(self, losses: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
        """(rows, values) of the embeddings from each of the losses: added up by torch, two sparse gradients take as
        long as all else of a step."""
        found: list[tuple[Tensor, Tensor]] = []
        table = self.network.embedding.weight
        for loss in losses:
            table.grad = None
            loss.backward()
            if table.grad is not None:
                found.append((table.grad._indices()[0], table.grad._values()))
        table.grad = None
        return found

    def _losses(self) -> list[Tensor]:
        """Of the lists, and of the impressions where these are learned from; their sum is minimised."""
        settings, part = self.settings, self._lists()
        scores = self.network(part.request, part.candidate, self._mask(part.valid.numel())).view(part.valid.shape)
        loss = 0.0 * scores.sum()
        if settings.distillation:
            loss = loss + settings.distillation * distillation(scores, part.teacher, part.valid)
        if settings.consistency:
            loss = loss + settings.consistency * consistency(scores, part.teacher, part.valid)
        if not (settings.click_loss_weight and self.sources.impressions):
            return [loss]
        shown = next(self._clicks)
        logits = self.network(shown.request, shown.candidate, self._mask(len(shown.label)))
        logits = as_drawn(logits + self.bias(shown.position), shown)
        return [loss, settings.click_loss_weight * F.binary_cross_entropy_with_logits(logits, shown.label)]

    def _mask(self, rows: int) -> Tensor | None:
        return self.gates.sample(rows, self.noise) if self.gates is not None else None

    def _lists(self) -> ListBatch:
        lists, length = self.sources.lists, min(self.settings.list_length, self.sources.lists.rows.shape[1])
        count = max(self.settings.batch_size // length, 1)
        requests = self.rng.choice(len(lists), count, replace=count > len(lists))
        return batch(self.sources.items, lists, requests, drawn(lists, requests, length, self.rng))

    def _impressions(self) -> Iterator[Batch]:
        examples = self.sources.impressions
        size = max(self.settings.batch_size // CLICKS_SHARE, 1)
        while examples is not None:
            yield from examples.batches(min(size, examples.rows), shuffle=True, seed=int(self.rng.integers(2**31)),
                                        drop_last=True)


def prior(network: Fscd, lists: CandidateLists) -> None:
    """Starts the output at the mean of the ranker's logits."""
    nn.init.constant_(network.mlp.output_bias, float(lists.teacher[lists.valid].mean()))
