"""A client's local training: plain gradient descent on its submodel, from the round's rows and dense part.

Samples beyond `max_samples` are left out, the same ones every round, so that no client weighs more than was agreed.
FedProx adds mu / 2 |w - w_round|^2 to the loss (Li et al., 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from contracts.config.config import Config
from contracts.errors import ProtocolError
from federated.clients.networks import FederatedNetworks
from federated.clients.row_space import RowSpace
from federated.protocol.local_update import LocalUpdate
from federated.protocol.plan import ATTEMPTS
from models.examples.batches import Batch


@dataclass(frozen=True)
class LocalSettings:
    """Of plain gradient descent: the rate of round t is `learning_rate` * `decay`^t; `proximal` is mu of FedProx."""

    epochs: int
    batch_size: int
    learning_rate: float
    decay: float
    proximal: float
    seed: int


@dataclass(frozen=True)
class ClientTrainer:
    """`batch`: all of the client's samples. `client` only seeds the order of its samples."""

    space: RowSpace
    config: Config
    local: LocalSettings
    batch: Batch
    client: int

    def held(self) -> np.ndarray:
        """Sorted places of the private rows that the samples use."""
        return self._held

    @cached_property
    def _held(self) -> np.ndarray:
        return self.space.held(self.batch)

    def samples(self) -> int:
        """How many there are, whatever rows a round has."""
        return len(self.batch.label)

    def train(
        self, round_number: int, places: np.ndarray, rows: np.ndarray, dense: np.ndarray, scale: float = 1.0
    ) -> LocalUpdate:
        """New minus old of `rows` [R, width] at sorted `places` [R] and of `dense` [D], after descent on the loss times
        `scale`. Raises ProtocolError where it diverges."""
        kept_ids = self.space.kept_ids(places)
        samples = self.space.narrowed(self.batch, kept_ids)
        held, kept = len(self.batch.label), len(samples.label)
        if not kept:
            return LocalUpdate(np.zeros_like(rows), np.zeros(len(places), np.int64), np.zeros_like(dense), 0, held, 0.0)
        torch.default_generator.manual_seed(hash((self.local.seed, self.client, round_number)) % 2**31)
        small = RowSpace(self.space.submodel_spec(kept_ids), self.space.public_up_to)
        networks = FederatedNetworks(small.spec, self.config)
        networks.write(rows, dense)
        loss = self._descend(networks, samples, round_number, scale)
        new_rows, new_dense = networks.read()
        if not np.isfinite(loss):
            raise ProtocolError(f"local training of round {round_number} diverged; lower federated.learning_rate")
        return LocalUpdate(new_rows - rows, row_samples(small, samples), new_dense - dense, kept, held, loss)

    def _descend(self, networks: FederatedNetworks, samples: Batch, round_number: int, scale: float) -> float:
        """Returns the sum of the samples' log losses of the first epoch, each before the update it was in."""
        local = self.local
        rate = local.learning_rate * local.decay ** (round_number // ATTEMPTS)
        parameters = [*networks.tables(), *networks.dense_parameters()]
        start = [p.detach().clone() for p in parameters] if local.proximal else []
        damped = networks.damped()
        rates = [rate * damped.get(id(parameter), 1.0) for parameter in parameters]
        generator = np.random.default_rng([local.seed, self.client, round_number])
        first = 0.0
        networks.train()
        for epoch in range(local.epochs):
            order = generator.permutation(len(samples.label))
            for at in range(0, len(order), local.batch_size):
                batch = samples.take(torch.from_numpy(order[at : at + local.batch_size]))
                for parameter in parameters:
                    parameter.grad = None
                total, loss = networks.loss(batch)
                (total * scale).backward()
                first += loss if epoch == 0 else 0.0
                _descend_once(parameters, start, rates, local.proximal)
        return first


@torch.no_grad()
def _descend_once(
    parameters: list[torch.nn.Parameter], start: list[torch.Tensor], rates: list[float], proximal: float
) -> None:
    for index, (parameter, rate) in enumerate(zip(parameters, rates, strict=True)):
        if start:
            parameter.add_(parameter - start[index], alpha=-rate * proximal)
        if parameter.grad is not None:
            parameter.add_(parameter.grad, alpha=-rate)


def row_samples(space: RowSpace, samples: Batch) -> np.ndarray:
    """int64 per place: how many samples use the row."""
    places = np.sort(space.places(samples), axis=1)
    first = np.ones_like(places, dtype=bool)
    first[:, 1:] = places[:, 1:] != places[:, :-1]
    used = places[first & (places >= 0)]
    return np.bincount(used, minlength=space.size).astype(np.int64)
