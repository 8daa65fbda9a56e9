"""One loop for every network: optimiser, clipping, early stopping, precision, device, several processes.

What is minimised comes in as a module of models/layers/losses.py; nothing here knows a network. Progress leaves through
callbacks.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from contracts.config.training import Train
from contracts.errors import SluiceError
from contracts.summaries.train import EpochFigures
from models.distributed import data_parallel
from models.distributed.kept_tensor import kept_copy
from models.distributed.run_checkpoint import STOP, Progress, RunCheckpoint
from models.distributed.world import World
from models.examples.batches import Batch, ExampleSet
from models.layers import batch_norm
from models.layers.item_prior import ItemPrior
from models.layers.losses import ClickLoss, PreRankLoss, RetrievalLoss
from models.layers.position_bias import PositionBias
from models.training.learning_rate import Patience, Schedule, rate
from models.training.monitor import Validated, validated
from models.training.optimisers import Optimisers
from models.training.precision import half_precision
from models.training.prior_weight import weigh_prior
from models.training.run_state import RunState
from models.training.unknown_ids import UnknownIds

EVALUATION_BATCH = 16_384
LINEAR_SHARE = 0.01  # of the penalty: a linear model's weights are effects over 10, and no layer scales them up
CHECKED = 32  # batches after which a GPU is asked whether the losses are finite
OnEpoch = Callable[[EpochFigures], None]
OnBatch = Callable[[int, int], None]
Start = Callable[[nn.Module], object]  # gives a prepared network weights to start from; says what, None: nothing
Change = Callable[[Batch], Batch]


@dataclass(frozen=True)
class FitResult:
    """`history`: one entry per epoch; `seconds` with evaluation, `rows_per_second` without; `position_bias` [positions]
    in logits, empty where nothing learns it."""

    history: list[EpochFigures]
    best_epoch: int
    seconds: float
    rows_per_second: float
    position_bias: list[float] = field(default_factory=list)


def fit(
    network: nn.Module, train: ExampleSet, validation: ExampleSet, settings: Train, seed: int, *, positions: int = 0,
    start: Start | None = None, on_epoch: OnEpoch | None = None, on_batch: OnBatch | None = None,
    kept: RunCheckpoint | None = None,
) -> FitResult:
    """Trains a ranker on log loss and leaves the weights of its best epoch in it, on the CPU, in evaluation mode.

    Popularity, unknown ids and batch normalisation come in here, by the settings; the last is folded away at the end,
    and validation says how much popularity counts beside what was learned.
    `on_batch(done, all)` counts the batches of the epoch. Raises SluiceError when the loss is not finite.
    """
    _prepare(network, train)
    if settings.item_prior:
        _count_popularity(network, train)
    if settings.batch_norm:
        batch_norm.shrink_embeddings(network)
    carried = start(network) if start else None
    if settings.batch_norm and not carried:
        batch_norm.insert(network)
    trained = any(parameter.requires_grad for parameter in network.parameters())
    bias = PositionBias(positions if trained else 0)
    bias.start_at(train)
    change = UnknownIds(train.spec, train, validation) if trained and settings.unknown_ids else None
    loss = ClickLoss(network, bias, settings.label_smoothing)
    half = half_precision(settings, data_parallel.resolve_device(settings.device), settings.batch_rows(train.rows))
    loop = Loop(loss, [network, bias], settings, seed, settings.epochs, schedule=settings.schedule,
                change=change, half=half)
    deep = batch_norm.hidden_layers(network)
    loop.weigh_rows(train, settings.embedding_l2 * (1.0 if deep else LINEAR_SHARE), paced=deep)
    result = loop.run(train, validation, on_epoch, on_batch, bias, kept)
    batch_norm.fold(network)
    weigh_prior(network, bias, validation)
    return result


def fit_towers(
    two_tower: nn.Module, train: ExampleSet, validation: ExampleSet, settings: Train, seed: int, *,
    start: Start | None = None, on_epoch: OnEpoch | None = None, on_batch: OnBatch | None = None,
    kept: RunCheckpoint | None = None,
) -> FitResult:
    """On the sampled softmax of clicks against the items shown, for `tower_epochs`; all else as `fit`."""
    _prepare(two_tower, train, start)
    loop = Loop(RetrievalLoss(two_tower), [two_tower], settings, seed, settings.tower_epochs)
    return loop.run(train, validation, on_epoch, on_batch, kept=kept)


def fit_pre_ranker(
    pre_ranker: nn.Module, two_tower: nn.Module, train: ExampleSet, validation: ExampleSet, settings: Train, seed: int,
    *, positions: int = 0, start: Start | None = None, on_epoch: OnEpoch | None = None,
    on_batch: OnBatch | None = None, kept: RunCheckpoint | None = None,
) -> FitResult:
    """As `fit_towers`, for the pre-ranker on frozen tower vectors and log loss."""
    _prepare(pre_ranker, train, start)
    bias = PositionBias(positions)
    bias.start_at(train)
    loop = Loop(PreRankLoss(pre_ranker, two_tower, bias), [pre_ranker, bias], settings, seed, settings.tower_epochs)
    return loop.run(train, validation, on_epoch, on_batch, bias, kept)


def _prepare(network: nn.Module, train: ExampleSet, start: Start | None = None) -> None:
    network.prepare(train)  # type: ignore[operator]
    if start:
        start(network)


def _count_popularity(network: nn.Module, train: ExampleSet) -> None:
    for module in network.modules():
        if isinstance(module, ItemPrior):
            module.start_at(train)


@torch.inference_mode()
def predict(network: nn.Module, examples: ExampleSet, batch_size: int = 65_536) -> np.ndarray:
    """Logits at position 1, float64 [N], in file order."""
    network.eval()
    device = next((tensor.device for tensor in network.state_dict().values()), torch.device("cpu"))
    parts = []
    for batch in examples.batches(batch_size):
        batch = batch.to(device)
        parts.append(network(batch.request, batch.candidate).double().cpu().numpy())
    return np.concatenate(parts)


class Loop:
    """`trained` are the modules whose parameters move, by models/training/optimisers.py.

    `change` is applied to training batches alone. Without plateaus, which only a run of epochs can see, `schedule` is
    "linear" or "constant". `half` is bf16, by default what `settings.precision` names.
    """

    def __init__(
        self, loss: nn.Module, trained: list[nn.Module], settings: Train, seed: int, epochs: int, *,
        schedule: Schedule | None = None, change: Change | None = None, half: bool | None = None,
    ) -> None:
        self.settings, self.seed, self.epochs, self.change = settings, seed, epochs, change
        self.half = settings.precision == "bf16" if half is None else half
        self.schedule: Schedule = schedule or ("constant" if settings.schedule == "constant" else "linear")
        self.patience = Patience(self.schedule, settings.patience)
        self.wish = 0.0  # for a checkpoint, of this process before an update and of all after it
        self.device = data_parallel.resolve_device(settings.device)
        self.world = data_parallel.join(self.device)
        torch.manual_seed(seed + self.world.rank)
        self.loss = loss.to(self.device)
        self.optimisers = Optimisers(trained, settings, self.world)
        self.parameters = self.optimisers.parameters
        if self.world.size > 1:
            data_parallel.same_start(self.optimisers.dense)

    def weigh_rows(self, train: ExampleSet, strength: float, paced: bool) -> None:
        """Gives the rows of the embeddings their penalty and pace, by how often the training window has them."""
        self.optimisers.weigh_rows(train, strength, self.settings.batch_rows(train.rows), paced)

    def run(
        self, train: ExampleSet, validation: ExampleSet, on_epoch: OnEpoch | None, on_batch: OnBatch | None,
        bias: PositionBias | None = None, kept: RunCheckpoint | None = None,
    ) -> FitResult:
        """Trains until the epochs are over or patience ends, and leaves the weights of the best epoch, on the CPU.

        Without a parameter to train there is one epoch, which only evaluates. `kept` is where the run is taken up from
        and written to. Raises SluiceError after a SIGTERM, when all is written.
        """
        train.hold()
        validation.hold()
        with kept or contextlib.nullcontext():
            return self._run(train, validation, on_epoch, on_batch, bias, kept)

    def _run(
        self, train: ExampleSet, validation: ExampleSet, on_epoch: OnEpoch | None, on_batch: OnBatch | None,
        bias: PositionBias | None, kept: RunCheckpoint | None,
    ) -> FitResult:
        begin, spent, best, best_epoch = time.perf_counter(), 0.0, -float("inf"), 0
        weights: dict[str, Tensor] = {}
        past = RunState(self.loss, self.optimisers, self.world).take_up(kept, weights, self.seed)
        history = [*past.history]
        for entry in history:
            score = _of(entry).score(self.settings.monitor)
            best, best_epoch = max((best, best_epoch), (score, entry.epoch), key=lambda pair: pair[0])
            self.patience.after(score, entry.validation_loss)
        epochs = self.epochs if self.parameters else 1
        for epoch in range(past.epoch, epochs + 1):
            start = time.perf_counter()
            now = past if epoch == past.epoch else Progress(epoch=epoch, history=tuple(history))
            train_loss = (self._epoch(train, now, on_batch, kept, weights) if self.parameters
                          else self._evaluate(train).loss)
            spent += time.perf_counter() - start
            if self.world.size > 1:
                data_parallel.average_buffers(self.loss.buffers(), self.world.size)
            found = self._evaluate(validation)
            entry = EpochFigures(
                epoch=epoch, train_loss=train_loss, validation_loss=found.loss, validation_auc=found.auc,
                validation_gauc=found.gauc, learning_rate=self.optimisers.learning_rate,
                seconds=time.perf_counter() - start)
            history.append(entry)
            if on_epoch:
                on_epoch(entry)
            score = found.score(self.settings.monitor)
            if score > best:
                best, best_epoch = score, epoch
                for name, tensor in self.loss.state_dict().items():
                    weights[name] = kept_copy(tensor, weights.get(name), kept.folder.parent if kept else None)
            verdict = self.patience.after(score, found.loss)
            if verdict == "stop":
                break
            if verdict == "fall":
                self.loss.load_state_dict(weights)
        self.loss.load_state_dict(weights)
        self.optimisers.restore()
        if kept:
            kept.clear()
        self.loss.cpu().eval()
        rows = train.rows * len(history)
        values = bias.values().tolist() if bias else []
        return FitResult(history, best_epoch, time.perf_counter() - begin, rows / spent, values)

    def _epoch(
        self, train: ExampleSet, now: Progress, on_batch: OnBatch | None, kept: RunCheckpoint | None,
        weights: dict[str, Tensor],
    ) -> float:
        """From where `now` stands in the epoch; `weights` are the best so far."""
        self.loss.train()
        size, (rank, world), epoch = self.settings.batch_rows(train.rows), self.world, now.epoch
        batches = train.batches(size, shuffle=True, seed=self.seed * 1000 + epoch, rank=rank, world=world)
        expected = -(-train.rows // size)
        total: Tensor | float = now.total
        count = now.count
        for number, batch in enumerate(itertools.islice(batches, now.batch, None), start=now.batch + 1):
            self.set_rate((epoch - 1 + (number - 1) / expected) / self.epochs)
            self.wish = kept.wish(self.world) if kept else 0.0
            value, terms = self.step(batch.pinned(self.device).to(self.device))
            total, count = total + value, count + terms
            if (self.device.type != "cuda" or number % CHECKED == 0) and not np.isfinite(float(total)):
                raise SluiceError(
                    f"the loss is {float(value)} at batch {number} of epoch {epoch}; lower train.learning_rate "
                    f"({self.settings.learning_rate:g}) or train.clip_norm ({self.settings.clip_norm:g}), and look for "
                    "extreme values in the numeric fields"
                )
            if on_batch:
                on_batch(number, max(expected, number))
            if kept and self.wish:
                reached = now.model_copy(update={"batch": number, "total": float(total), "count": count})
                self._write(kept, reached, weights)
        return float(total) / max(count, 1.0)

    def _write(self, kept: RunCheckpoint, reached: Progress, weights: Mapping[str, Tensor]) -> None:
        kept.write(reached, RunState(self.loss, self.optimisers, self.world).of(weights), self.world)
        if self.wish >= STOP:
            raise SluiceError(
                f"training was told to stop (SIGTERM) after batch {reached.batch} of epoch {reached.epoch}; "
                f"{kept.folder} holds a checkpoint, from which `sluice train --resume` goes on")

    def set_rate(self, progress: float) -> None:
        """`progress` from 0 to 1 of the planned epochs."""
        self.optimisers.learning_rate = rate(self.settings.learning_rate, self.schedule, progress, self.patience.falls)

    def step(self, batch: Batch) -> tuple[Tensor | float, int]:
        """One update; (sum of losses, number of terms) of all processes. A batch without terms changes nothing.

        On a GPU nobody waits for the sum, and an update is made of one that is not finite as well.
        """
        self.optimisers.zero_gradients()
        total, terms = self._loss(batch if self.change is None else self.change(batch))
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

    def _loss(self, batch: Batch) -> tuple[Tensor, int]:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            return self.loss(batch)

    @torch.no_grad()
    def _evaluate(self, examples: ExampleSet) -> Validated:
        self.loss.eval()
        total = count = 0.0
        seen: list[tuple[np.ndarray, ...]] = []
        for batch, mine in _dealt(examples.batches(EVALUATION_BATCH), self.world):
            value, terms = self._loss(batch.to(self.device))
            if not mine:
                continue
            total, count = total + float(value), count + terms
            if isinstance(self.loss, ClickLoss):
                seen.append(tuple(part.cpu().numpy() for part in (batch.label, self.loss.logits, batch.user)))
        mean = self._mean(total, count)
        if not isinstance(self.loss, ClickLoss):
            return Validated(mean)
        parts = zip(*data_parallel.gathered(seen, self.world), strict=True)
        labels, logits, users = (np.concatenate(part) for part in parts)
        return validated(mean, labels, logits, users, self.settings.monitor)

    def _mean(self, total: float, count: float) -> float:
        total, count = data_parallel.total([total, count], self.device, self.world)
        return total / max(count, 1.0)


def _dealt(batches: Iterator[Batch], world: World) -> Iterator[tuple[Batch, bool]]:
    """Each process its turn of the batches; in a last round that is short of them the others repeat the first of it,
    not as theirs, because embeddings are looked up together."""
    while turn := list(itertools.islice(batches, world.size)):
        mine = world.rank < len(turn)
        yield turn[world.rank if mine else 0], mine


def _of(entry: EpochFigures) -> Validated:
    return Validated(entry.validation_loss, entry.validation_auc, entry.validation_gauc)
