"""A model's quality on rows that train nothing, which stay where they are: clients score them and add up histograms.

One round of sums per cohort of at most TOGETHER clients, so that the population is bounded by nothing; each cohort's
AUC is known besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from contracts.errors import RoundAbandoned
from federated.protocol.messages import Exchange
from federated.protocol.plan import ATTEMPTS, TOGETHER
from federated.protocol.round_server import RoundServer
from federated.rounds.public_setup import PublicSetup
from federated.rounds.score_histograms import Histograms, item_count, model_as_vector


def count_scores(
    setup: PublicSetup, exchange: Exchange, clients: Sequence[int], rows: np.ndarray, dense: np.ndarray, number: int
) -> list[Histograms]:
    """One for each cohort; `setup` is that of HISTOGRAMS, `number` higher with each call. Raises RoundAbandoned when a
    cohort's round cannot be finished."""
    model = model_as_vector(rows, dense, setup.plan.dense)
    cohorts = np.array_split(np.asarray(clients), max(1, -(-len(clients) // TOGETHER)))
    return [_counted(setup, exchange, cohort.tolist(), model, number) for cohort in cohorts]


def together(counted: Sequence[Histograms]) -> Histograms:
    """Their sum."""
    return reduce(Histograms.plus, counted)


def _counted(
    setup: PublicSetup, exchange: Exchange, clients: list[int], model: np.ndarray, number: int
) -> Histograms:
    accused: set[int] = set()
    for attempt in range(ATTEMPTS):
        server = RoundServer(setup.plan, number * ATTEMPTS + attempt, exchange, np.zeros((0, 1), np.float32), model)
        try:
            opened = server.run([client for client in clients if client not in accused])
        except RoundAbandoned as error:
            reason, accused = error, accused | set(error.accused)
            continue
        return Histograms.of_flat(opened.dense, item_count(setup.space.spec))
    raise RoundAbandoned(f"{ATTEMPTS} rounds of counting scores were abandoned; the last because: {reason}")
