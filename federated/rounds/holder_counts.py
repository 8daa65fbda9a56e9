"""Who holds what in a population, for averaging that divides by it: securely counted unions, before the first round.

Counted once and kept: another count may lack other clients, and a running mean is divided by this one for ever. Groups
of at most TOGETHER clients are counted each by itself, which adds up to the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contracts.bundle.bundle import load_weights
from contracts.errors import RoundAbandoned
from federated.protocol.plan import ATTEMPTS, TOGETHER, Plan
from federated.protocol.round_server import Holders, RoundServer
from federated.rounds.run_folder import POPULATION, replace
from federated.rounds.suspicion import Suspicion


class Population(NamedTuple):
    """`of_row` [space]: how many of the `clients` that were there hold a row, at least 1; `mean_samples` of each."""

    of_row: np.ndarray
    clients: int
    mean_samples: float


class HolderCount:
    """`server_of` makes the round of a number; `accused` are not asked, and grow."""

    def __init__(
        self, plan: Plan, server_of: Callable[[int], RoundServer], seed: int, suspicion: Suspicion, accused: set[int]
    ) -> None:
        self._plan, self._server_of, self._seed = plan, server_of, seed
        self._suspicion, self._accused = suspicion, accused

    def of(self, folder: Path, clients: Sequence[int]) -> Population:
        """As it was counted; of these clients now where it was not. Raises RoundAbandoned."""
        if not (folder / POPULATION).exists():
            replace(folder / POPULATION, self._count(clients))
        counted, plan = load_weights(folder / POPULATION), self._plan
        there = int(counted["clients"][0])
        of_row = np.full(plan.space, float(there))
        if plan.policy.name != "all" or plan.rule == "heat":
            of_row[plan.private_places] = np.maximum(counted["holders"], 1)
        return Population(of_row, there, float(counted["mean_samples"][0]))

    def _count(self, clients: Sequence[int]) -> dict[str, np.ndarray]:
        groups = np.array_split(np.asarray(clients), max(1, -(-len(clients) // TOGETHER)))
        counted = [self._group(group.tolist()) for group in groups]
        number = max(sum(each.clients for each in counted), 1)
        return {"holders": np.sum([each.of_row for each in counted], axis=0), "clients": np.array([number]),
                "mean_samples": np.array([sum(each.samples for each in counted) / number])}

    def _group(self, clients: list[int]) -> Holders:
        """In the numbers before the first round's."""
        self._suspicion.begin_round()
        for number in range(ATTEMPTS):
            there = self._suspicion.without(
                [client for client in clients if client not in self._accused], random.Random(self._seed + number))
            try:
                return self._server_of(number).holders(there)
            except RoundAbandoned as error:
                reason = error
                self._accused |= set(error.accused)
                if error.suspects:
                    self._suspicion.spoilt(error.suspects)
        raise RoundAbandoned(f"holders were not counted in {ATTEMPTS} attempts; the last because: {reason}")
