"""Fits vectors and heads to the counted rates of a graph: early stopping on held-out pairs, resumed after being killed.

A tenth of the pairs is held out of loss and messages; the epoch that predicts them best is kept. Each epoch draws from
generators seeded by (seed, epoch), and its end is written as one checkpoint in one rename, so that a run that was
killed and started again ends in the same weights as one that was not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contracts.atomic_write import aside
from contracts.bundle.bundle import load_weights, save_weights
from contracts.config.training import PairRates
from contracts.errors import SluiceError
from contracts.summaries.pair_rates import PretrainEpoch
from models.optimisation.row_adam import RowAdam, row_gradient
from models.pair_rates.graph import PairGraph
from models.pair_rates.loss import squared_sum, target
from models.pair_rates.network import PairNetwork

HELD_OUT, MOST_HELD_OUT = 0.1, 200_000
EVALUATION_EDGES = 16_384
PLAIN = PairRates(weighting="n", pseudo_impressions=0.0)
OnEpoch = Callable[[PretrainEpoch], None]
OnBatch = Callable[[int, int], None]


@dataclass(frozen=True)
class Pretrained:
    """`resumed` epochs of the history were not run, but read from the checkpoint."""

    history: tuple[PretrainEpoch, ...]
    best_epoch: int
    edges_per_second: float
    resumed: int


def fit(
    network: PairNetwork, graph: PairGraph, settings: PairRates, seed: int, *, checkpoint: Path | None = None,
    digest: str = "", on_epoch: OnEpoch | None = None, on_batch: OnBatch | None = None,
) -> Pretrained:
    """Leaves the weights of the best epoch in the network, in evaluation mode.

    A checkpoint of another `digest` is not used. `on_batch(done, all)` counts the batches of the epoch. Raises
    SluiceError when the loss is not finite.
    """
    run = PretrainRun(network, graph, settings, seed)
    if checkpoint is not None and checkpoint.exists():
        run.restore(checkpoint, digest)
    resumed, spent = len(run.history), 0.0
    while not run.finished:
        begin = time.perf_counter()
        epoch = len(run.history) + 1
        train_loss = run.epoch(epoch, on_batch)
        spent += time.perf_counter() - begin
        run.end(epoch, train_loss, run.evaluate(), time.perf_counter() - begin)
        if checkpoint is not None:
            run.save(checkpoint, digest)
        if on_epoch:
            on_epoch(run.history[-1])
    network.load_state_dict(run.best)
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
    """What one pre-training holds: the graph less its held-out edges, both optimisers, the best weights so far."""

    def __init__(self, network: PairNetwork, graph: PairGraph, settings: PairRates, seed: int) -> None:
        self.network, self.whole, self.settings, self.seed = network, graph, settings, seed
        _, self.holdout = hold_out(graph, seed)
        self.graph = graph.without(self.holdout)
        self.train = self.graph.targets
        self.values = network.encoder.values
        dense = [parameter for parameter in network.parameters() if parameter is not self.values]
        self.rows = RowAdam(self.values, settings.learning_rate, settings.weight_decay)  # type: ignore[arg-type]
        self.adam = torch.optim.AdamW(dense, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True)
        self.history: list[PretrainEpoch] = []
        self.best: dict[str, Tensor] = {}
        self.best_epoch = 0

    @property
    def finished(self) -> bool:
        """After the planned epochs, or `patience` of them without a better one."""
        done = len(self.history)
        return done >= self.settings.epochs or done - self.best_epoch >= self.settings.patience

    def epoch(self, epoch: int, on_batch: OnBatch | None, most_batches: int | None = None) -> float:
        """Mean weighted loss of the training edges, of the first `most_batches` alone where that is given."""
        torch.manual_seed(self.seed * 1000 + epoch)
        generator = torch.Generator().manual_seed(self.seed * 1000 + epoch)
        self.network.train()
        batches = self.train[torch.randperm(len(self.train), generator=generator)].split(self.settings.batch_size)
        batches = batches[:most_batches]
        total = weights = 0.0
        for number, edges in enumerate(batches, start=1):
            self._set_rate((epoch - 1 + (number - 1) / len(batches)) / self.settings.epochs)
            loss, weight = self._step(edges, generator)
            if not np.isfinite(loss):
                raise SluiceError(
                    f"the pre-training loss is {loss} at batch {number} of epoch {epoch}; lower "
                    f"pair_rates.learning_rate ({self.settings.learning_rate:g})"
                )
            total, weights = total + loss, weights + weight
            if on_batch:
                on_batch(number, len(batches))
        return total / weights

    def _step(self, edges: Tensor, generator: torch.Generator) -> tuple[float, float]:
        """One update; (sum of weighted losses, sum of weights)."""
        self.values.grad = None
        self.adam.zero_grad()
        logits = self.network(self.graph, edges, self.graph, generator)
        rate, weight, spread = self._targets(self.graph, edges, self.settings)
        total = squared_sum(logits, rate, weight / spread)
        (total / weight.sum()).backward()
        self.adam.step()
        self.rows.step(*row_gradient(self.values.grad))  # type: ignore[arg-type]
        return float(total.detach()), float(weight.sum())

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
        total = weights = 0.0
        generator = torch.Generator().manual_seed(self.seed)
        evaluated = self.holdout if len(self.holdout) else self.train
        for edges in evaluated.split(EVALUATION_EDGES):
            logits = self.network(self.graph, edges, self.whole, generator)
            rate, weight, spread = self._targets(self.whole, edges, PLAIN)
            total += float(squared_sum(logits, rate, weight / spread))
            weights += float(weight.sum())
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
            self.best = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}

    def save(self, path: Path, digest: str) -> None:
        """Everything in one file: weights, the best ones, both optimisers' moments, and the history as JSON bytes."""
        state = {"digest": digest, "history": [entry.plain() for entry in self.history], "best_epoch": self.best_epoch}
        tensors = {"state": torch.frombuffer(bytearray(json.dumps(state).encode()), dtype=torch.uint8)}
        tensors |= {f"now.{name}": tensor for name, tensor in self.network.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        tensors |= {f"rows.{name}": getattr(self.rows, name) for name in ("mean", "square", "seen")}
        for number, moments in self.adam.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": tensor for name, tensor in moments.items()}
        with aside(path) as draft:
            save_weights(draft, {name: tensor.numpy() for name, tensor in tensors.items()})

    def restore(self, path: Path, digest: str) -> None:
        """Goes on where the checkpoint ended; one of another digest is left aside."""
        tensors = {name: torch.from_numpy(array) for name, array in load_weights(path).items()}
        state = json.loads(bytes(tensors.pop("state").numpy()))
        if state["digest"] != digest:
            return
        self.history = [PretrainEpoch.model_validate(entry) for entry in state["history"]]
        self.best_epoch = state["best_epoch"]
        groups: dict[str, dict[str, Tensor]] = {"now": {}, "best": {}, "rows": {}, "adam": {}}
        for name, tensor in tensors.items():
            group, _, rest = name.partition(".")
            groups[group][rest] = tensor
        self.network.load_state_dict(groups["now"])
        self.best = groups["best"]
        for name, tensor in groups["rows"].items():
            getattr(self.rows, name).copy_(tensor)
        adam = self.adam.state_dict()
        for name, tensor in groups["adam"].items():
            number, _, key = name.partition(".")
            adam["state"].setdefault(int(number), {})[key] = tensor
        self.adam.load_state_dict(adam)
