"""The sequence encoder as a retrieval model: trained on what followed each action, asked with a user's latest ones.

Weights are averaged over the updates (`averaging`, Polyak & Juditsky 1992, exponentially), validated after every
`validate_every` epochs by full ranking, and those of the best NDCG@10 are kept.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from contracts.errors import SluiceError
from contracts.features.feature_spec import UNKNOWN
from contracts.progress import report
from models.distributed.run_checkpoint import RunCheckpoint
from models.interactions.interactions import Interactions
from models.interactions.kept_fit import FitProgress, KeptFit
from models.interactions.retriever import Fitted
from models.interactions.splits import Holdout, Split
from models.interactions.validation import BestEpoch, validation_ndcg
from models.sequences import length_buckets, sampled_softmax
from models.sequences.encoder import EncoderSettings, SequenceEncoder

OnEpoch = Callable[[int, float, float], None]


class SequenceSettings(BaseModel):
    """`batch`: predictions an update; `averaging`: share of the averaged weights that an update keeps, less at the
    start, 0: none; `smallest_rate`: of the learning rate, reached by a cosine at the last epoch; `unknown_items`: share
    of the items read in training that are made unknown, so that a new item in a history is understood.

    `second_moment`: Adam's second decay. Items are rare in batches, and at the usual 0.999 a row that is seen once
    moves by 30 learning rates until its first moment has faded; at 0.98 by 7.

    `horizon`: a target is drawn evenly from this many next actions. 1: the next one; more is the dense all-action
    objective of PinnerFormer (KDD 2022).

    `untold`: share of the sequences of which the times, or the values of a column, are made unknown, each by itself, so
    that a request that does not tell them is understood; only where the log tells any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder: EncoderSettings = EncoderSettings()
    negatives: int = Field(1024, ge=1)
    epochs: int = Field(30, ge=1)
    patience: int = Field(2, ge=1)
    validate_every: int = Field(10, ge=1)
    batch: int = Field(1024, ge=1)
    learning_rate: float = Field(5e-3, gt=0)
    smallest_rate: float = Field(0.1, ge=0, le=1)
    weight_decay: float = Field(0.0, ge=0)
    averaging: float = Field(0.998, ge=0, lt=1)
    second_moment: float = Field(0.98, ge=0, lt=1)
    horizon: int = Field(1, ge=1)
    unknown_items: float = Field(0.0, ge=0, lt=1)
    untold: float = Field(0.1, ge=0, lt=1)


class SequenceRetriever:
    """`on_epoch(epoch, loss, validation NDCG@10)` after each validation. Raises SluiceError on a loss that is not
    finite."""

    kept: RunCheckpoint | None = None  # where a fit is taken up from and written to
    start: Callable[[SequenceEncoder], None] | None = None  # gives the network weights to start from

    def __init__(self, settings: SequenceSettings, seed: int, on_epoch: OnEpoch | None = None) -> None:
        self.settings, self.seed, self.on_epoch = settings, seed, on_epoch
        self.network: SequenceEncoder

    def fit(self, split: Split) -> Fitted:
        """One seed gives one fit on one machine."""
        torch.manual_seed(self.seed)
        s, begin, spent, seen = self.settings, time.perf_counter(), 0.0, 0
        told = split.train.told
        trained = SequenceEncoder(split.train.table, s.encoder.sized(len(split.train.items)),
                                  told.tables if told else ())
        if self.start:
            self.start(trained)
        averaged = self.network = copy.deepcopy(trained)
        adam = torch.optim.AdamW(trained.parameters(), lr=s.learning_rate, weight_decay=s.weight_decay,
                                 betas=(0.9, s.second_moment), fused=True)
        best: BestEpoch[dict[str, Tensor]] = BestEpoch(s.patience * s.validate_every)
        with KeptFit(self.kept, {"trained": trained, "averaged": averaged}, adam, best) as run:
            now = run.take_up()
            while now.epoch <= s.epochs:
                start, before = time.perf_counter(), now.rows
                now = self._epoch(trained, adam, split.train, now, run)
                spent, seen = spent + time.perf_counter() - start, seen + now.rows - before
                report(f"epochs of {s.encoder.block}", now.epoch, s.epochs)
                if not self._goes_on(split.validation, now, best):
                    break
                now = FitProgress(epoch=now.epoch + 1, updates=now.updates)
        averaged.load_state_dict(best.state)
        return Fitted(time.perf_counter() - begin, seen / spent if seen else 0.0, best.epoch)

    def _goes_on(self, validation: Holdout, now: FitProgress, best: BestEpoch[dict[str, Tensor]]) -> bool:
        """After an epoch, which is validated when its turn has come."""
        if now.epoch % self.settings.validate_every and now.epoch < self.settings.epochs:
            return True
        ndcg = validation_ndcg(self, validation)
        if self.on_epoch:
            self.on_epoch(now.epoch, now.total / max(now.rows, 1), ndcg)
        return best.goes_on(now.epoch, ndcg, lambda: copy.deepcopy(self.network.state_dict()))

    def _epoch(self, trained: SequenceEncoder, adam: torch.optim.Optimizer, log: Interactions, now: FitProgress,
               run: KeptFit) -> FitProgress:
        """From where `now` stands in the epoch to its end."""
        s, made = self.settings, list(self._batches(log, now.epoch))
        trained.train()
        run.begin_epoch(now)
        run.go_on(now)
        for number, batch in enumerate(made[now.batch:], start=now.batch):
            adam.param_groups[0]["lr"] = s.learning_rate * self._pace((now.epoch - 1 + number / len(made)) / s.epochs)
            loss = self._update(trained, adam, batch, log.table)
            updates, rows = now.updates + 1, len(batch.target)
            average(self.network, trained, min(s.averaging, updates / (updates + 9)))
            now = now.model_copy(update={"batch": number + 1, "updates": updates, "rows": now.rows + rows,
                                         "total": now.total + loss * rows})
            run.keep(now)
        if not np.isfinite(now.total):
            raise SluiceError(f"the loss of epoch {now.epoch} is not finite; lower learning_rate "
                              f"({s.learning_rate:g})")
        return now

    def _update(self, trained: SequenceEncoder, adam: torch.optim.Optimizer, batch: length_buckets.SequenceBatch,
                table: int) -> float:
        """The mean loss of the batch, before it."""
        adam.zero_grad()
        items, events = self._some_unknown(batch.items), some_untold(batch.events, self.settings.untold)
        users = trained(items, events).flatten(0, 1)[batch.place]
        loss = sampled_softmax.loss(users, trained, batch.target,
                                    sampled_softmax.negatives(table, self.settings.negatives))
        loss.backward()
        adam.step()
        return float(loss.detach())

    def _batches(self, log: Interactions, epoch: int) -> Iterator[length_buckets.SequenceBatch]:
        random = np.random.default_rng([self.seed, epoch])
        return length_buckets.batches(log, self.settings.encoder.length, self.settings.batch, random,
                                      self.settings.horizon)

    def _some_unknown(self, items: Tensor) -> Tensor:
        rate = self.settings.unknown_items
        return torch.where((torch.rand(items.shape) < rate) & (items > 0), UNKNOWN, items) if rate else items

    def _pace(self, progress: float) -> float:
        low = self.settings.smallest_rate
        return low + (1 - low) * (1 + np.cos(np.pi * progress)) / 2

    @torch.no_grad()
    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """From the latest actions alone; who the users are is not read. A user without history scores all 0."""
        self.network.eval()
        width = min(int(history.lengths.max(initial=1)), self.settings.encoder.length)
        rows = np.arange(history.users)
        items, events = history.padded(rows, max(width, 1)), history.padded_events(rows, max(width, 1))
        return self.network.users(torch.from_numpy(items), torch.from_numpy(events)) @ self.network.vectors().T


def some_untold(events: Tensor, share: float) -> Tensor:
    """[U, L, E] with what is told of a sequence unknown in its whole, each thing by itself, in `share` of them."""
    if not events.shape[2] or not share:
        return events
    left = torch.rand(len(events), 1, events.shape[2]) < share
    return torch.where(left & (events > 0), UNKNOWN, events)


@torch.no_grad()
def average(averaged: nn.Module, trained: nn.Module, kept: float) -> None:
    """averaged <- kept * averaged + (1 - kept) * trained, tensor by tensor."""
    torch._foreach_lerp_(list(averaged.parameters()), list(trained.parameters()), 1 - kept)
