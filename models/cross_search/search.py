"""Algorithm 1 of FIVES (KDD 2021): the network steps on the fit part, the structure on the holdout, batch by batch.

    Theta <- Adam step on L(fit batch  | A, Theta)        rate learning_rate
    H     <- Adam step on L(holdout batch | A, Theta)        rate edge_learning_rate, first order

The temperature of eq. 8 falls from 1 to `temperature_end` by a constant factor a step. Memory is that of a batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch

from contracts.config.training import Crosses, Train
from contracts.errors import SluiceError
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries.crosses import SearchEpoch
from models.examples.batches import Batch, ExampleSet
from models.layers.losses import ClickLoss
from models.layers.position_bias import PositionBias
from models.networks.fives import Fives
from models.training.loop import Loop

OnBatch = Callable[[int, int], None]


class Searched(NamedTuple):
    """Soft adjacency [N, N] per layer at temperature 1, the losses per epoch, and the rows seen a second."""

    adjacency: list[np.ndarray]
    history: tuple[SearchEpoch, ...]
    rows_per_second: float


def search(
    spec: FeatureSpec, fit: ExampleSet, holdout: ExampleSet, allowed: np.ndarray, settings: Crosses, train: Train,
    seed: int, on_batch: OnBatch | None = None,
) -> Searched:
    """`allowed` [N, N] bool over the nodes of models/networks/fives.py. Raises SluiceError when the structure is not
    finite."""
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
    alternation = _Alternation(loop, network, settings)
    begin = time.perf_counter()
    history = tuple(alternation.epoch(epoch, fit, holdout, seed, on_batch) for epoch in range(1, settings.epochs + 1))
    seconds = time.perf_counter() - begin
    return Searched(_adjacency(network), history, settings.epochs * fit.rows / seconds)


@torch.no_grad()
def _adjacency(network: Fives) -> list[np.ndarray]:
    edges = network.cpu().edges
    edges.temperature.fill_(1.0)
    layers = [soft.double().numpy() for soft in edges()]
    if not all(np.isfinite(layer).all() for layer in layers):
        raise SluiceError("the structure of the cross search is not finite; lower crosses.edge_learning_rate")
    return layers


class _Alternation:
    def __init__(self, loop: Loop, network: Fives, settings: Crosses) -> None:
        self.loop, self.network, self.settings = loop, network, settings
        self.adam = torch.optim.Adam([network.edges.structure], lr=settings.edge_learning_rate)

    def epoch(
        self, epoch: int, fit: ExampleSet, holdout: ExampleSet, seed: int, on_batch: OnBatch | None
    ) -> SearchEpoch:
        """Every batch of the fit part with one of the holdout, which is gone through again and again."""
        size, expected = self.settings.batch_size, -(-fit.rows // self.settings.batch_size)
        endless = _endless(holdout, size, seed + epoch)
        losses = np.zeros(4)
        begin = time.perf_counter()
        self.loop.loss.train()
        for number, batch in enumerate(fit.batches(size, shuffle=True, seed=seed * 1000 + epoch), start=1):
            progress = min(1.0, (epoch - 1 + number / expected) / self.settings.epochs)
            self.network.edges.temperature.fill_(self.settings.temperature_end**progress)
            loss, terms = self.loop.step(batch.to(self.loop.device))
            losses += (float(loss), terms, *self._structure_step(next(endless)))
            if on_batch:
                on_batch(number, max(expected, number))
        return SearchEpoch(
            epoch=epoch, fit_loss=losses[0] / max(losses[1], 1), holdout_loss=losses[2] / max(losses[3], 1),
            seconds=time.perf_counter() - begin)

    def _structure_step(self, batch: Batch) -> tuple[float, int]:
        structure = self.network.edges.structure
        for parameter in self.loop.parameters:
            parameter.requires_grad_(False)
        structure.requires_grad_(True)
        total, terms = self.loop.loss(batch.to(self.loop.device))
        structure.grad = None
        (total / max(terms, 1)).backward()
        self.adam.step()
        structure.requires_grad_(False)
        for parameter in self.loop.parameters:
            parameter.requires_grad_(True)
        return float(total.detach()), terms


def _endless(examples: ExampleSet, size: int, seed: int) -> Iterator[Batch]:
    while True:
        yield from examples.batches(size, shuffle=True, seed=seed)
        seed += 1
