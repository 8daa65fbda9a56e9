"""Algorithm 1 of FIVES (KDD 2021): the network steps on the fit part, the structure on the holdout, batch by batch.

    Theta <- Adam step on L(fit batch  | A, Theta)        rate learning_rate
    H     <- Adam step on L(holdout batch | A, Theta)        rate edge_learning_rate, first order

The temperature of eq. 8 falls from 1 to `temperature_end` by a constant factor a step. Memory is that of a batch. A
search that was ended in the middle goes on from its checkpoint (models/distributed/run_checkpoint.py).
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from contracts.config.training import Crosses, Train
from contracts.errors import SluiceError
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries.crosses import SearchEpoch
from models.distributed.run_checkpoint import Kept, RunCheckpoint, State
from models.examples.batches import Batch, ExampleSet
from models.examples.prefetch import arriving
from models.layers.losses import ClickLoss
from models.layers.position_bias import PositionBias
from models.networks.fives import Fives
from models.training.loop import Loop
from models.training.run_state import RunState

STRUCTURE = "structure"
OnBatch = Callable[[int, int], None]


class Searched(NamedTuple):
    """Soft adjacency [N, N] per layer at temperature 1, the losses per epoch, and the rows seen a second."""

    adjacency: list[np.ndarray]
    history: tuple[SearchEpoch, ...]
    rows_per_second: float


class SearchProgress(Kept):
    """`batch` batches of `epoch` are done, with sums of `losses` over so many `terms`, of the fit part and the holdout;
    `history` of the epochs before it, which took `seconds` with what is done of this one."""

    epoch: int = 1
    batch: int = 0
    losses: tuple[float, ...] = (0.0, 0.0)
    terms: tuple[int, ...] = (0, 0)
    seconds: float = 0.0
    history: tuple[SearchEpoch, ...] = ()


def search(
    spec: FeatureSpec, fit: ExampleSet, holdout: ExampleSet, allowed: np.ndarray, settings: Crosses, train: Train,
    seed: int, on_batch: OnBatch | None = None, kept: RunCheckpoint | None = None,
) -> Searched:
    """`allowed` [N, N] bool over the nodes of models/networks/fives.py. `kept` is where the search is taken up from and
    written to. Raises SluiceError when the structure is not finite, and after a SIGTERM, when all is written."""
    torch.manual_seed(seed)
    network = Fives(spec, settings.dim, settings.hidden, settings.dropout, settings.layers, settings.readout,
                    torch.from_numpy(allowed))
    network.prepare(fit)
    bias = PositionBias(spec.positions)
    bias.start_at(fit)
    network.edges.structure.requires_grad_(False)
    changed = {"learning_rate": settings.learning_rate, "batch_size": settings.batch_size,
               "weight_decay": settings.weight_decay, "schedule": "constant"}
    loop = Loop(ClickLoss(network, bias), [network, bias], train.model_copy(update=changed), seed, settings.epochs)
    alternation = _Alternation(loop, network, settings, kept)
    now = alternation.take_up()
    with kept or contextlib.nullcontext():
        while now.epoch <= settings.epochs:
            now = alternation.epoch(now, fit, holdout, seed, on_batch)
            alternation.keep_end(now)
    return Searched(_adjacency(network), now.history, settings.epochs * fit.rows / now.seconds)


@torch.no_grad()
def _adjacency(network: Fives) -> list[np.ndarray]:
    edges = network.cpu().edges
    edges.temperature.fill_(1.0)
    layers = [soft.double().numpy() for soft in edges()]
    if not all(np.isfinite(layer).all() for layer in layers):
        raise SluiceError("the structure of the cross search is not finite; lower crosses.edge_learning_rate")
    return layers


class _Alternation:
    def __init__(self, loop: Loop, network: Fives, settings: Crosses, kept: RunCheckpoint | None) -> None:
        self.loop, self.network, self.settings, self.kept = loop, network, settings, kept
        self.adam = torch.optim.Adam([network.edges.structure], lr=settings.edge_learning_rate)
        self.state = RunState(loop.loss, loop.optimisers, loop.world)

    def epoch(
        self, now: SearchProgress, fit: ExampleSet, holdout: ExampleSet, seed: int, on_batch: OnBatch | None
    ) -> SearchProgress:
        """From where `now` stands to the start of the next one: every batch of the fit part with one of the holdout,
        which is gone through again and again."""
        size, expected = self.settings.batch_size, -(-fit.rows // self.settings.batch_size)
        parts = (fit.batches(size, shuffle=True, seed=seed * 1000 + now.epoch),
                 _endless(holdout, size, seed + now.epoch))
        pairs = zip(*(arriving(itertools.islice(part, now.batch, None), self.loop.device) for part in parts),
                    strict=False)
        begin, seconds, losses = time.perf_counter(), now.seconds, self._sums(now.losses)
        self.loop.loss.train()
        for number, pair in enumerate(pairs, start=now.batch + 1):
            progress = min(1.0, (now.epoch - 1 + number / expected) / self.settings.epochs)
            self.network.edges.temperature.fill_(self.settings.temperature_end**progress)
            found, terms = self._step(*pair)
            losses += found
            now = now.model_copy(update={
                "batch": number, "terms": tuple(a + b for a, b in zip(now.terms, terms, strict=True)),
                "seconds": seconds + time.perf_counter() - begin})
            if on_batch:
                on_batch(number, max(expected, number))
            self._keep(now, losses)
        means = [loss / max(count, 1) for loss, count in zip(losses.tolist(), now.terms, strict=True)]
        done = SearchEpoch(epoch=now.epoch, fit_loss=means[0], holdout_loss=means[1],
                           seconds=time.perf_counter() - begin)
        return SearchProgress(epoch=now.epoch + 1, seconds=now.seconds, history=(*now.history, done))

    def take_up(self) -> SearchProgress:
        """Where the newest checkpoint stands, whose state is taken over; the start where there is none."""
        found = self.kept.latest(SearchProgress) if self.kept else None
        if self.kept is None or found is None:
            return SearchProgress()
        dense = self.state.load(self.kept, found, {})
        structure = self.network.edges.structure
        with torch.no_grad():
            structure.copy_(dense[STRUCTURE])
        moments = {name.removeprefix(f"{STRUCTURE}."): tensor for name, tensor in dense.items()
                   if name.startswith(f"{STRUCTURE}.")}
        self.adam.load_state_dict({**self.adam.state_dict(), "state": {0: moments}})
        return found

    def _keep(self, now: SearchProgress, losses: Tensor) -> None:
        wish = self.kept.wish(self.loop.world) if self.kept else 0.0
        if self.kept is not None and wish:
            reached = now.model_copy(update={"losses": tuple(losses.tolist())})
            self.kept.keep(wish, reached, self._state(), self.loop.world, f"batch {now.batch} of epoch {now.epoch}")

    def keep_end(self, now: SearchProgress) -> None:
        """Of the last epoch: what follows the search need not wait for another one."""
        if self.kept is not None and now.epoch > self.settings.epochs:
            self.kept.write(now, self._state(), self.loop.world)

    def _state(self) -> State:
        structure, kept = self.network.edges.structure, self.state.of({})
        moments = {f"{STRUCTURE}.{name}": moment for name, moment in self.adam.state.get(structure, {}).items()}
        return kept._replace(dense={**kept.dense, STRUCTURE: structure, **moments})

    def _sums(self, values: Iterable[Tensor | float]) -> Tensor:
        """float64 on the device, which nobody waits for."""
        return torch.stack([torch.as_tensor(value, dtype=torch.float64, device=self.loop.device) for value in values])

    def _step(self, batch: Batch, other: Batch) -> tuple[Tensor, tuple[int, int]]:
        """Sums of the losses and their terms, as in `SearchProgress`."""
        loss, terms = self.loop.step(batch)
        structure_loss, structure_terms = self._structure_step(other)
        return self._sums((loss, structure_loss)), (terms, structure_terms)

    def _structure_step(self, batch: Batch) -> tuple[Tensor, int]:
        structure = self.network.edges.structure
        for parameter in self.loop.parameters:
            parameter.requires_grad_(False)
        structure.requires_grad_(True)
        total, terms = self.loop.loss(batch)
        structure.grad = None
        (total / max(terms, 1)).backward()
        self.adam.step()
        structure.requires_grad_(False)
        for parameter in self.loop.parameters:
            parameter.requires_grad_(True)
        return total.detach(), terms


def _endless(examples: ExampleSet, size: int, seed: int) -> Iterator[Batch]:
    while True:
        yield from examples.batches(size, shuffle=True, seed=seed)
        seed += 1
