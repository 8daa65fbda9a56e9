"""One loop for every network: optimiser, clipping, early stopping, precision, device, several processes.

What is minimised comes in as a module of models/layers/losses.py; nothing here knows a network. Progress leaves through
callbacks.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from contracts.config.training import Train
from contracts.errors import SluiceError
from contracts.summaries.train import EpochFigures
from models.distributed import data_parallel
from models.distributed.run_checkpoint import Progress, RunCheckpoint
from models.examples.batches import Batch, ExampleSet
from models.examples.prefetch import arriving
from models.layers.position_bias import PositionBias
from models.optimisation.learning_rate import Patience, Schedule, rate
from models.optimisation.optimisers import Optimisers
from models.training.best_weights import BestWeights
from models.training.kept_memory import keep_freed_memory
from models.training.monitor import Validated
from models.training.run_state import RunState
from models.training.validation import evaluated, loss_of

FEWEST = 16  # rows of a last batch, or a quarter of a full one: the mean and spread of few are no guide
CHECKED = 32  # batches after which a GPU is asked whether the losses are finite, beside at the end of an epoch
OnEpoch = Callable[[EpochFigures], None]
OnBatch = Callable[[int, int], None]
Change = Callable[[Batch], Batch]


@dataclass(frozen=True)
class FitResult:
    """`history`: one entry per epoch; `seconds` with evaluation, `rows_per_second` without, both of this process, which
    may have taken the run up from another one; `position_bias` [positions] in logits, empty where nothing learns it."""

    history: list[EpochFigures]
    best_epoch: int
    seconds: float
    rows_per_second: float
    position_bias: list[float] = field(default_factory=list)


class Loop:
    """`trained` are the modules whose parameters move, by models/optimisation/optimisers.py.

    `change` is applied to training batches alone. Without plateaus, which only a run of epochs can see, `schedule` is
    "linear" or "constant". `half` is bf16, by default what `settings.precision` names. `negative_rate`: share of the
    negatives in training, of which validation has all.
    """

    def __init__(
        self, loss: nn.Module, trained: list[nn.Module], settings: Train, seed: int, epochs: int, *,
        schedule: Schedule | None = None, change: Change | None = None, half: bool | None = None,
        negative_rate: float = 1.0,
    ) -> None:
        self.settings, self.seed, self.epochs, self.change = settings, seed, epochs, change
        self.negative_rate = negative_rate
        self.half = settings.precision == "bf16" if half is None else half
        self.schedule: Schedule = schedule or ("constant" if settings.schedule == "constant" else "linear")
        self.patience = Patience(self.schedule, settings.patience)
        self.wish = 0.0  # for a checkpoint, of this process before an update and of all after it
        self.device = data_parallel.resolve_device(settings.device)
        self.checked = CHECKED if self.device.type == "cuda" else 1
        keep_freed_memory()
        self.world = data_parallel.join(self.device)
        torch.manual_seed(seed + self.world.rank)
        self.loss = loss.to(self.device)
        self.optimisers = Optimisers(trained, settings, self.world)
        self.parameters = self.optimisers.parameters
        if self.world.size > 1:
            counted = [buffer for buffer in self.loss.buffers() if buffer.is_floating_point()]
            data_parallel.same_start([*self.optimisers.dense, *counted])

    def weigh_rows(self, train: ExampleSet, strength: float, paced: bool) -> None:
        """Gives the rows of the embeddings their penalty and pace, by how often the training window has them."""
        self.optimisers.weigh_rows(train, strength, self.settings.batch_rows(train.rows), paced)

    def run(
        self, train: ExampleSet, validation: ExampleSet, on_epoch: OnEpoch | None, on_batch: OnBatch | None,
        bias: PositionBias | None = None, kept: RunCheckpoint | None = None,
    ) -> FitResult:
        """Trains until the epochs are over or patience ends, and leaves the weights of the best epoch, on the CPU.

        Without a parameter to train there is one epoch, which only evaluates. `kept` is where the run is taken up from
        and written to. Raises SluiceError after a SIGTERM, when all is written, and where losses are not finite.
        """
        train.hold()
        validation.hold()
        with kept or contextlib.nullcontext():
            return self._run(train, validation, on_epoch, on_batch, bias, kept)

    def _run(
        self, train: ExampleSet, validation: ExampleSet, on_epoch: OnEpoch | None, on_batch: OnBatch | None,
        bias: PositionBias | None, kept: RunCheckpoint | None,
    ) -> FitResult:
        begin, spent, trained = time.perf_counter(), 0.0, 0.0
        best = BestWeights(self.loss, kept.folder.parent if kept else None)
        past = RunState(self.loss, self.optimisers, self.world).take_up(kept, best.weights, self.seed)
        history = [*past.history]
        for entry in history:
            best.seen(self._score(entry), entry.epoch)
            self.patience.after(self._score(entry), entry.validation_loss)
        for epoch in range(past.epoch, (self.epochs if self.parameters else 1) + 1):
            now = past if epoch == past.epoch else Progress(epoch=epoch, history=tuple(history))
            start = time.perf_counter()
            reached = self._train(train, now, on_batch, kept, best.weights)
            seconds = time.perf_counter() - start
            spent, trained = spent + seconds, trained + 1 - self._done(now, train)
            entry = self._figures(epoch, reached.mean, validation, start)
            if kept:
                self._keep_after_validation(kept, reached, best.weights)
            history.append(entry)
            if on_epoch:
                on_epoch(entry)
            best.offer(self._score(entry), epoch)
            if not best.epoch:
                raise SluiceError(self._no_score(entry, validation))
            verdict = self.patience.after(self._score(entry), entry.validation_loss)
            if verdict == "stop":
                break
            if verdict == "fall":
                best.restore()
        best.restore()
        self.optimisers.restore()
        self.loss.cpu().eval()
        values = bias.values().tolist() if bias else []
        return FitResult(history, best.epoch, time.perf_counter() - begin, train.rows * trained / spent, values)

    def _done(self, now: Progress, train: ExampleSet) -> float:
        """Share of the epoch that an earlier process has trained."""
        return min(now.batch * self.settings.batch_rows(train.rows) / train.rows, 1.0)

    def _train(
        self, train: ExampleSet, now: Progress, on_batch: OnBatch | None, kept: RunCheckpoint | None,
        weights: Mapping[str, Tensor],
    ) -> Progress:
        """The end of the epoch; where nothing is trained, with the loss of the window as the network stands."""
        if not self.parameters:
            return now.model_copy(update={"total": self._evaluate(train, 1.0).loss, "count": 1.0})
        return self._epoch(train, now, on_batch, kept, weights)

    def _keep_after_validation(self, kept: RunCheckpoint, reached: Progress, weights: Mapping[str, Tensor]) -> None:
        """After an epoch's validation, during which nobody was asked; a run taken up there validates again."""
        self.wish, = data_parallel.total([kept.wish(self.world)], self.device, self.world)
        self._keep(kept, reached, weights)

    def _figures(self, epoch: int, train_loss: float, validation: ExampleSet, start: float) -> EpochFigures:
        if self.world.size > 1:
            data_parallel.average_buffers(self.loss.buffers(), self.world.size)
        found = self._evaluate(validation, self.negative_rate)
        return EpochFigures(
            epoch=epoch, train_loss=train_loss, validation_loss=found.loss, validation_auc=found.auc,
            validation_gauc=found.gauc, learning_rate=self.optimisers.learning_rate,
            seconds=time.perf_counter() - start)

    def _evaluate(self, examples: ExampleSet, negative_rate: float) -> Validated:
        return evaluated(self.loss, examples, self.settings.monitor, self.world, self.device, negative_rate)

    def _score(self, entry: EpochFigures) -> float:
        found = Validated(entry.validation_loss, entry.validation_auc, entry.validation_gauc)
        return found.score(self.settings.monitor)

    def _epoch(
        self, train: ExampleSet, now: Progress, on_batch: OnBatch | None, kept: RunCheckpoint | None,
        weights: Mapping[str, Tensor],
    ) -> Progress:
        """From where `now` stands in the epoch to its end; `weights` are the best so far."""
        self.loss.train()
        size, (rank, world), epoch = self.settings.batch_rows(train.rows), self.world, now.epoch
        fewest = min(FEWEST, size // 4) if train.rows > size else 1
        batches = train.batches(size, shuffle=True, seed=self.seed * 1000 + epoch, rank=rank, world=world,
                                fewest=fewest)
        expected = -(-train.rows // size)
        total: Tensor | float = now.total
        count, number = now.count, now.batch
        if number:
            self.set_rate((epoch - 1 + (number - 1) / expected) / self.epochs)
        coming = arriving(itertools.islice(batches, now.batch, None), self.device)
        for number, batch in enumerate(coming, start=now.batch + 1):
            self.set_rate((epoch - 1 + (number - 1) / expected) / self.epochs)
            self.wish = kept.wish(self.world) if kept else 0.0
            value, terms = self.step(batch)
            total, count = total + value, count + terms
            if number % self.checked == 0:
                self._require_finite(total, number, epoch)
            if on_batch:
                on_batch(number, max(expected, number))
            if kept and self.wish:
                self._keep(kept, _reached(now, number, total, count), weights)
        self._require_finite(total, number, epoch)
        return _reached(now, number, total, count)

    def _require_finite(self, total: Tensor | float, batch: int, epoch: int) -> None:
        if not np.isfinite(float(total)):
            raise SluiceError(
                f"the loss is {float(total)} at batch {batch} of epoch {epoch}; {self._calmer}, and look for extreme "
                "values in the numeric fields"
            )

    def _no_score(self, entry: EpochFigures, validation: ExampleSet) -> str:
        """Of epochs of which none is the best, as their losses are no numbers; such an epoch after a better one is only
        no better."""
        return (f"{validation.folder}: the validation loss is {entry.validation_loss} after epoch {entry.epoch}, whose "
                f"training loss is {entry.train_loss:.4g}; look for values in the numeric fields of this window that "
                f"are far beyond those of the training window, or {self._calmer}")

    @property
    def _calmer(self) -> str:
        s = self.settings
        return f"lower train.learning_rate ({s.learning_rate:g}) or train.clip_norm ({s.clip_norm:g})"

    def _keep(self, kept: RunCheckpoint, reached: Progress, weights: Mapping[str, Tensor]) -> None:
        if self.wish:
            state = RunState(self.loss, self.optimisers, self.world).of(weights)
            kept.keep(self.wish, reached, state, self.world, f"batch {reached.batch} of epoch {reached.epoch}")

    def set_rate(self, progress: float) -> None:
        """`progress` from 0 to 1 of the planned epochs."""
        self.optimisers.learning_rate = rate(self.settings.learning_rate, self.schedule, progress, self.patience.falls)

    def step(self, batch: Batch) -> tuple[Tensor | float, int]:
        """One update; (sum of losses, number of terms) of all processes. A batch without terms changes nothing.

        On a GPU nobody waits for the sum, and an update is made of one that is not finite as well.
        """
        self.optimisers.zero_gradients()
        total, terms = loss_of(self.loss, batch if self.change is None else self.change(batch), self.half)
        if self.world.size > 1:
            return self._shared_step(total, terms)
        value = total.detach().double()
        if terms and (value.is_cuda or bool(value.isfinite())):
            (total / terms).backward()
            self.optimisers.step()
        return value, terms

    def _shared_step(self, total: Tensor, terms: int) -> tuple[float, int]:
        """A process without terms sends zeros: the others wait for them."""
        if total.requires_grad:
            total.backward()
        found = self.optimisers.sum_gradients(total, terms, self.wish)
        self.wish = found.wishes
        if np.isfinite(found.loss) and found.terms:
            self.optimisers.step()
        return found.loss, found.terms


def _reached(now: Progress, batch: int, total: Tensor | float, count: float) -> Progress:
    return now.model_copy(update={"batch": batch, "total": float(total), "count": count})
