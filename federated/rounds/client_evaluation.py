"""A model's quality on rows that train nothing, which stay where they are: clients score them and add up histograms.

One round of sums per cohort of at most TOGETHER clients, so that the population is bounded by nothing; each cohort's
AUC is known besides. Cohorts are the same each time: who is there in one and not in the next is what differs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import reduce

import numpy as np

from contracts.errors import RoundAbandoned
from federated.protocol.messages import Exchange
from federated.protocol.plan import ATTEMPTS, TOGETHER
from federated.protocol.round_server import RoundServer
from federated.rounds.cohorts import Cohorts
from federated.rounds.public_setup import PublicSetup
from federated.rounds.score_histograms import Histograms, item_count, model_as_vector
from federated.rounds.suspicion import Suspicion


def count_scores(
    setup: PublicSetup, exchange: Exchange, clients: Sequence[int], rows: np.ndarray, dense: np.ndarray, number: int
) -> list[Histograms]:
    """One for each cohort; `setup` is one of COUNTING, `number` higher with each call. Raises RoundAbandoned when a
    cohort's round cannot be finished."""
    model = model_as_vector(rows, dense, setup.plan.dense)
    least = max(setup.plan.min_clients, TOGETHER // 2)
    population = len(setup.plan.identities)
    cohorts = Cohorts(population, max(1, -(-population // TOGETHER)), setup.config.seed, least, TOGETHER)
    return [_counted(setup, exchange, cohort, model, number) for cohort in cohorts.there(clients)]


def together(counted: Sequence[Histograms]) -> Histograms:
    """Their sum."""
    return reduce(Histograms.plus, counted)


def _counted(
    setup: PublicSetup, exchange: Exchange, clients: list[int], model: np.ndarray, number: int
) -> Histograms:
    accused, suspicion = set[int](), Suspicion(setup.plan.min_clients)
    for attempt in range(ATTEMPTS):
        asked = suspicion.without(
            [client for client in clients if client not in accused], random.Random(setup.config.seed + attempt))
        server = RoundServer(setup.plan, number * ATTEMPTS + attempt, exchange, np.zeros((0, 1), np.float32), model)
        try:
            opened = server.run(asked)
        except RoundAbandoned as error:
            reason, accused = error, accused | set(error.accused)
            if error.suspects:
                suspicion.spoilt(error.suspects)
            continue
        return Histograms.of_flat(opened.dense, item_count(setup.space.spec))
    raise RoundAbandoned(f"{ATTEMPTS} rounds of counting scores were abandoned; the last because: {reason}")
