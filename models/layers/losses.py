"""What is minimised, as modules from a batch to (sum of losses, number of terms), so that means over batches are exact.

A position bias enters the loss and never the network: serving is at position 1, where it is 0. So do the draws of a log
of positives alone (models/examples/batches.py): the network learns log odds among all items from those that were drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from contracts.artifacts import LABEL
from contracts.errors import OneClassError
from models.examples.batches import Batch, ExampleSet, FeatureBlock
from models.examples.shown_items import ShownItems

Share = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, int]]


def prior_logit(examples: ExampleSet) -> float:
    """Log odds of the mean label, undrawn. Raises OneClassError when all labels are equal."""
    rate = sum(float(labels.sum(dtype=np.float64)) for (labels,) in examples.parts(LABEL)) / examples.rows
    if not 0.0 < rate < 1.0:
        raise OneClassError(
            f"{examples.folder}: all {examples.rows} labels are {rate:g}; widen the window to have both")
    return float(np.log(rate / (1.0 - rate)) + examples.log_draws().mean())


def as_drawn(logits: Tensor, batch: Batch) -> Tensor:
    """Log odds among all items -> those among rows that were drawn for positives; the same where none were."""
    return logits if batch.log_draws is None else logits - batch.log_draws


def log_loss_sum(logits: Tensor, labels: Tensor) -> Tensor:
    """Sum over rows of -y log p - (1 - y) log(1 - p), p = sigmoid(logit); float32 whatever the network's precision."""
    return F.binary_cross_entropy_with_logits(logits.float(), labels, reduction="sum")


def sampled_softmax_sum(scores: Tensor, target: Tensor, log_frequency: Tensor, hits: Tensor) -> Tensor:
    """Sum over P rows of -log softmax(scores - log Q) at `target` (Yi et al., RecSys 2019, eq. 2-4).

    scores [P, B]; target [P] column of each row's positive; log_frequency [B]; hits [P, B] bool: columns that are
    positives of the row themselves, which are left out (the target excepted).
    """
    corrected = scores.float() - log_frequency
    left_out = hits.scatter(1, target[:, None], False)
    return F.cross_entropy(corrected.masked_fill(left_out, -torch.inf), target, reduction="sum")


def hardest_sum(scores: Tensor, target: Tensor, hits: Tensor, number: int) -> Tensor:
    """Sum over P rows of -log softmax at `target`, of it and the `number` columns that score highest beside it (Huang
    et al., KDD 2020, online hard negatives); shapes as in `sampled_softmax_sum`. What is hard was not drawn, so that
    there is no frequency to correct for."""
    others = scores.float().masked_fill(hits.scatter(1, target[:, None], True), -torch.inf)
    hard = others.topk(min(number, others.shape[1]), dim=1).values
    both = torch.cat([scores.float().gather(1, target[:, None]), hard], dim=1)
    return F.cross_entropy(both, torch.zeros_like(target), reduction="sum")


class ClickLoss(nn.Module):
    """Log loss of a ranker's logit plus the position bias. In training, labels are `smoothing` and 1 - `smoothing`.

    `logits` [B] are those of the last batch, where its rows were shown.
    """

    logits: Tensor

    def __init__(self, network: nn.Module, position_bias: nn.Module, smoothing: float = 0.0) -> None:
        super().__init__()
        self.network, self.position_bias, self.smoothing = network, position_bias, smoothing

    def forward(self, batch: Batch) -> tuple[Tensor, int]:
        logits = self.network(batch.request, batch.candidate) + self.position_bias(batch.position)
        self.logits, label = logits.detach().float(), batch.label
        if self.training and self.smoothing:
            label = label * (1 - 2 * self.smoothing) + self.smoothing
        return log_loss_sum(as_drawn(logits, batch), label), len(label)


class RetrievalLoss(nn.Module):
    """Every click against all items shown in the batch, without the clicked item again and the user's other clicks.

    `share` brings the items of all processes together in training (models/distributed/shared_candidates.py): from
    (vectors [B, D], numbers [B, n]) of this one to (those of all [N, ...], the row at which its own begin). In
    training, `mixed` items drawn evenly from `catalogue` stand beside those of the batch (Yang et al., WWW 2020), Q
    being the mixture's, and a click's `hard` highest-scored negatives count once more. Validation is without all three.
    """

    def __init__(
        self, two_tower: nn.Module, catalogue: ShownItems | None = None, mixed: int = 0, hard: int = 0,
        share: Share | None = None,
    ) -> None:
        super().__init__()
        self.two_tower, self.catalogue, self.mixed, self.hard, self.share = two_tower, catalogue, mixed, hard, share

    def forward(self, batch: Batch) -> tuple[Tensor, int]:
        towers, rows = self.two_tower, len(batch.label)
        target = batch.clicks()
        clicked = batch.take(target)
        own, columns = self._against(batch)
        users, vectors = towers.both(clicked.request, columns)  # type: ignore[operator]
        ids, items, user, label, first = own[:rows], vectors[:rows], batch.user, batch.label > 0, 0
        if self.share is not None and self.training:
            items, numbers, first = self.share(items, torch.stack([ids, user.long(), label.long()], 1))
            ids, user, label = numbers[:, 0], numbers[:, 1], numbers[:, 2] > 0
        shown, ids = len(ids), torch.cat([ids, own[rows:]])
        same_item = own[target][:, None] == ids[None]
        same_user = (clicked.user[:, None] == user[None]) & label[None]
        hits = same_item | F.pad(same_user, (0, len(ids) - shown))
        scores = users @ torch.cat([items, vectors[rows:]]).T / towers.temperature
        loss = sampled_softmax_sum(scores, target + first, self._log_frequency(ids, shown), hits)
        if self.training and self.hard:
            loss = loss + hardest_sum(scores, target + first, hits, self.hard)
        return loss, len(target)

    def _against(self, batch: Batch) -> tuple[Tensor, FeatureBlock]:
        """Ids and columns of the items of the batch and, behind them, of those drawn from the catalogue."""
        shown = self.two_tower.item_ids(batch.candidate)  # type: ignore[operator]
        if not self._draws:
            return shown, batch.candidate
        ids, columns = self.catalogue.draw(self.mixed, shown.device)  # type: ignore[union-attr]
        own = (part[:, : of.shape[1]] for part, of in zip(batch.candidate, columns, strict=True))
        return torch.cat([shown, ids]), FeatureBlock(*map(torch.cat, zip(own, columns, strict=True)))

    def _log_frequency(self, ids: Tensor, rows: int) -> Tensor:
        """log(rows Q + mixed / N) beside draws, N items in the catalogue; log Q without."""
        log_frequency: Tensor = self.two_tower.item_log_frequency[ids]  # type: ignore[index]
        if not self._draws:
            return log_frequency
        return (rows * log_frequency.exp() + self.mixed / len(self.catalogue.ids)).log()  # type: ignore[union-attr]

    @property
    def _draws(self) -> bool:
        return self.training and self.mixed > 0 and self.catalogue is not None


class PreRankLoss(nn.Module):
    """Log loss of the pre-ranker on vectors of frozen towers."""

    def __init__(self, pre_ranker: nn.Module, two_tower: nn.Module, position_bias: nn.Module) -> None:
        super().__init__()
        self.pre_ranker, self.position_bias, self.two_tower = pre_ranker, position_bias, two_tower

    def forward(self, batch: Batch) -> tuple[Tensor, int]:
        towers = self.two_tower.eval()
        with torch.no_grad():
            users, items = towers.user_vector(batch.request), towers.item_vector(batch.candidate)  # type: ignore[operator]
        logits = self.pre_ranker(users, items) + self.position_bias(batch.position)
        return log_loss_sum(as_drawn(logits, batch), batch.label), len(batch.label)
