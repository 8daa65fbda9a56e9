"""Fits vectors and heads to the counted rates of a graph: early stopping on held-out pairs, resumed after being killed.

A tenth of the pairs is held out of loss and messages; the epoch that predicts them best is kept. Each epoch draws from
generators seeded by (seed, epoch), whose states its checkpoints hold (models/distributed/run_checkpoint.py), so that a
run that was killed and started again ends in the same weights as one that was not. The graph is moved to the device as
a whole, neighbours are drawn there.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contracts.config.training import PairRates
from contracts.errors import SluiceError
from contracts.summaries.pair_rates import PretrainEpoch
from models.distributed.kept_tensor import kept_copy
from models.distributed.run_checkpoint import Kept, RunCheckpoint, State
from models.distributed.world import ALONE
from models.optimisation.optimisers import MANY_ROWS
from models.optimisation.row_adam import RowAdam, row_gradient
from models.pair_rates.edge_batches import edge_batches, shares
from models.pair_rates.graph import PairGraph
from models.pair_rates.loss import squared_sum, target
from models.pair_rates.network import PairNetwork
from models.training.loop import CHECKED
from models.training.run_state import random_states, restore_random_states

HELD_OUT, MOST_HELD_OUT = 0.1, 200_000
EVALUATION_EDGES = 16_384
NOW, BEST = "now", "best"  # weights of a checkpoint
SAMPLING = "sampling"  # the generator that draws neighbours
CPU = torch.device("cpu")
PLAIN = PairRates(weighting="n", pseudo_impressions=0.0)
OnEpoch = Callable[[PretrainEpoch], None]
OnBatch = Callable[[int, int], None]


class PretrainProgress(Kept):
    """`batch` batches of `epoch` are done, with a `total` of weighted losses over `weights`; `history` of the epochs
    before it."""

    epoch: int = 1
    batch: int = 0
    total: float = 0.0
    weights: float = 0.0
    history: tuple[PretrainEpoch, ...] = ()
    best_epoch: int = 0


@dataclass(frozen=True)
class Pretrained:
    """`resumed` epochs of the history were not run, but read from the checkpoint."""

    history: tuple[PretrainEpoch, ...]
    best_epoch: int
    edges_per_second: float
    resumed: int


def fit(
    network: PairNetwork, graph: PairGraph, settings: PairRates, seed: int, *, kept: RunCheckpoint | None = None,
    on_epoch: OnEpoch | None = None, on_batch: OnBatch | None = None, device: torch.device = CPU,
) -> Pretrained:
    """Leaves the weights of the best epoch in the network, on the CPU, in evaluation mode.

    `kept` is where the run is taken up from and written to. `on_batch(done, all)` counts the batches of the epoch.
    Raises SluiceError when the loss is not finite, and after a SIGTERM, when all is written.
    """
    run = PretrainRun(network, graph, settings, seed, device, kept.folder.parent if kept else None)
    now = run.take_up(kept)
    resumed, spent = len(run.history), 0.0
    with kept or contextlib.nullcontext():
        while not run.finished:
            begin = time.perf_counter()
            train_loss = run.epoch(now, on_batch, kept)
            spent += time.perf_counter() - begin
            run.end(now.epoch, train_loss, run.evaluate(), time.perf_counter() - begin)
            now = PretrainProgress(epoch=now.epoch + 1)
            if on_epoch:
                on_epoch(run.history[-1])
    network.cpu().load_state_dict(run.best)
    network.eval()
    edges = len(run.train) * (len(run.history) - resumed)
    return Pretrained(tuple(run.history), run.best_epoch, edges / spent if spent else 0.0, resumed)


def hold_out(graph: PairGraph, seed: int) -> tuple[Tensor, Tensor]:
    """(numbers of the training edges, of the held-out ones) among the edges with a rate to learn; of several edges
    one at least is held out."""
    order = graph.targets[torch.randperm(len(graph.targets), generator=torch.Generator().manual_seed(seed))]
    count = min(max(int(HELD_OUT * len(order)), 1), MOST_HELD_OUT, max(len(order) - 1, 0))
    return order[count:].sort().values, order[:count].sort().values


class PretrainRun:
    """What one pre-training holds: the graph less its held-out edges, both optimisers, the best weights so far, of
    which large ones lie in files of `folder`. From MANY_ROWS values on they have one second moment each."""

    def __init__(
        self, network: PairNetwork, graph: PairGraph, settings: PairRates, seed: int, device: torch.device = CPU,
        folder: Path | None = None,
    ) -> None:
        self.network, self.settings, self.seed, self.device = network.to(device), settings, seed, device
        self.folder = folder
        _, holdout = hold_out(graph, seed)
        self.whole, self.graph, self.holdout = graph.to(device), graph.without(holdout).to(device), holdout.to(device)
        self.train = self.graph.targets
        self.values = network.encoder.values
        dense = [parameter for parameter in network.parameters() if parameter is not self.values]
        self.table = next(name for name, each in network.named_parameters() if each is self.values)
        self.rows = RowAdam(self.values, settings.learning_rate, settings.weight_decay,  # type: ignore[arg-type]
                            by_row=graph.nodes >= MANY_ROWS)
        self.adam = torch.optim.AdamW(dense, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True)
        self.history: list[PretrainEpoch] = []
        self.best: dict[str, Tensor] = {}
        self.best_epoch = 0

    @property
    def finished(self) -> bool:
        """After the planned epochs, or `patience` of them without a better one."""
        done = len(self.history)
        return done >= self.settings.epochs or done - self.best_epoch >= self.settings.patience

    def epoch(
        self, now: PretrainProgress, on_batch: OnBatch | None = None, kept: RunCheckpoint | None = None,
        most_batches: int | None = None,
    ) -> float:
        """Mean weighted loss of the training edges from where `now` stands, of the first `most_batches` alone where
        that is given."""
        batches, drawn = self._drawn(now, kept)
        batches = batches[:most_batches]
        self.network.train()
        sums = torch.tensor([now.total, now.weights], dtype=torch.float64, device=self.device)
        for number, edges in enumerate(batches[now.batch :], start=now.batch + 1):
            self._set_rate((now.epoch - 1 + (number - 1) / len(batches)) / self.settings.epochs)
            sums += self._step(edges, drawn)
            if (self.device.type != "cuda" or number % CHECKED == 0) and not np.isfinite(loss := float(sums[0])):
                raise SluiceError(
                    f"the pre-training loss is {loss} at batch {number} of epoch {now.epoch}; lower "
                    f"pair_rates.learning_rate ({self.settings.learning_rate:g})"
                )
            if on_batch:
                on_batch(number, len(batches))
            self._keep(kept, now.epoch, number, sums, drawn)
        total, weights = sums.tolist()
        return total / weights

    def _drawn(self, now: PretrainProgress, kept: RunCheckpoint | None) -> tuple[list[Tensor], torch.Generator]:
        """The batches of this epoch, and what draws their edges' neighbours from where `now` stands."""
        seed = self.seed * 1000 + now.epoch
        generator = torch.Generator().manual_seed(seed)
        relation = self.graph.edges.relation[self.train]
        batches = edge_batches(self.train, relation, self.settings.batch_size, generator)
        if self.device.type != "cpu":
            generator = torch.Generator(self.device).manual_seed(seed)
        if kept is not None and now.batch:
            generator.set_state(kept.read_own(SAMPLING, ALONE))
            restore_random_states(kept, ALONE)
        else:
            torch.manual_seed(seed)
        return batches, generator

    def _step(self, edges: Tensor, generator: torch.Generator) -> Tensor:
        """One update; float64 (weighted loss, sum of weights)."""
        self.values.grad = None
        self.adam.zero_grad()
        logits = self.network(self.graph, edges, self.graph, generator)
        rate, weight, spread = self._targets(self.graph, edges, self.settings)
        loss = squared_sum(logits, rate, shares(weight, self.graph.edges.relation[edges]) / spread)
        loss.backward()
        self.adam.step()
        self.rows.step(*row_gradient(self.values.grad))  # type: ignore[arg-type]
        weights = weight.sum()
        return torch.stack([loss.detach() * weights, weights]).double()

    def _targets(self, graph: PairGraph, edges: Tensor, settings: PairRates) -> tuple[Tensor, Tensor, Tensor]:
        """(rate, weight, prior x (1 - prior)); the last makes losses of rare and common clicks alike."""
        prior = self.whole.priors[graph.edges.relation[edges].long()]
        parts = target(graph.edges.clicks[edges], graph.edges.exposure[edges], prior, settings)
        return *parts, prior * (1.0 - prior)

    @torch.no_grad()
    def evaluate(self) -> float:
        """Loss of the held-out pairs, which no message and no loss has seen: that of their impressions, whatever the
        weighting and the target, so that settings can be compared by it. A graph of a single pair holds none out and is
        evaluated on that one."""
        self.network.eval()
        sums = torch.zeros(2, dtype=torch.float64, device=self.device)
        generator = torch.Generator(self.device).manual_seed(self.seed)
        evaluated = self.holdout if len(self.holdout) else self.train
        for edges in evaluated.split(EVALUATION_EDGES):
            logits = self.network(self.graph, edges, self.whole, generator)
            rate, weight, spread = self._targets(self.whole, edges, PLAIN)
            sums += torch.stack([squared_sum(logits, rate, weight / spread), weight.sum()])
        total, weights = sums.tolist()
        return total / max(weights, 1e-9)

    def _set_rate(self, progress: float) -> None:
        """Falls to 0 over the planned epochs."""
        now = self.settings.learning_rate * (1.0 - progress)
        self.rows.learning_rate = now
        for group in self.adam.param_groups:
            group["lr"] = now

    def end(self, epoch: int, train_loss: float, validation_loss: float, seconds: float) -> None:
        """Closes an epoch: its losses are noted, its weights kept where no epoch before was better."""
        self.history.append(
            PretrainEpoch(epoch=epoch, train_loss=train_loss, validation_loss=validation_loss, seconds=seconds))
        if epoch == min(self.history, key=lambda entry: entry.validation_loss).epoch:
            self.best_epoch = epoch
            self.best = {name: kept_copy(tensor, self.best.get(name), self.folder)
                         for name, tensor in self.network.state_dict().items()}

    def _keep(
        self, kept: RunCheckpoint | None, epoch: int, batch: int, sums: Tensor, drawn: torch.Generator
    ) -> None:
        wish = kept.wish(ALONE) if kept else 0.0
        if kept is not None and wish:
            total, weights = sums.tolist()
            reached = PretrainProgress(epoch=epoch, batch=batch, total=total, weights=weights,
                                       history=tuple(self.history), best_epoch=self.best_epoch)
            kept.keep(wish, reached, self.state(drawn), ALONE, f"batch {batch} of epoch {epoch}")

    def state(self, drawn: torch.Generator) -> State:
        """Weights, the best ones, both optimisers' moments; generators."""
        tensors = {f"{NOW}.{name}": tensor for name, tensor in self.network.state_dict().items()}
        tensors |= {f"{BEST}.{name}": tensor for name, tensor in self.best.items()}
        for number, moments in self.adam.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": tensor for name, tensor in moments.items()}
        rows = self._rows_state()
        dense = {name: tensor for name, tensor in tensors.items() if name not in rows}
        return State(rows, dense, random_states() | {SAMPLING: drawn.get_state()})

    def _rows_state(self) -> dict[str, Tensor]:
        """[N, ...] each, which are read and written by the row: as large as there are values."""
        moments = {f"rows.{name}": tensor for name, tensor in self.rows.state().items() if name != "weight"}
        best = {f"{BEST}.{self.table}": self.best[self.table]} if self.best else {}
        return {f"{NOW}.{self.table}": self.values, **moments, **best}  # type: ignore[dict-item]

    def take_up(self, kept: RunCheckpoint | None) -> PretrainProgress:
        """Where the newest checkpoint stands, whose state is taken over; the start where there is none."""
        found = kept.latest(PretrainProgress) if kept else None
        if kept is None or found is None:
            return PretrainProgress()
        self.history, self.best_epoch = [*found.history], found.best_epoch
        groups: dict[str, dict[str, Tensor]] = {NOW: {}, BEST: {}, "adam": {}}
        for name, tensor in kept.read_dense().items():
            group, _, rest = name.partition(".")
            groups[group][rest] = tensor
        self.network.load_state_dict({**groups[NOW], self.table: self.values})
        if found.best_epoch:
            self.best = {**groups[BEST], self.table: kept_copy(self.rows.weight.detach(), None, self.folder)}
        for name, tensor in self._rows_state().items():
            kept.read_rows(name, tensor, found.processes, ALONE)
        adam = self.adam.state_dict()
        for name, tensor in groups["adam"].items():
            number, _, key = name.partition(".")
            adam["state"].setdefault(int(number), {})[key] = tensor
        self.adam.load_state_dict(adam)
        return found
