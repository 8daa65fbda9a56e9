"""The Flower ServerApp: rounds of one setting over whatever nodes the grid has, from a prepared folder.

Run configuration: `folder` (made by `sluice federate`), `setting`, `rounds` (0: as configured), `nodes` (how many must
be there before the first round; 0: as many as a round has clients). The model of each completed round lies in
FOLDER/runs/SETTING-flower; started again, the run goes on after it. Nodes evaluate it on rows that they do not
train on; histograms of the best round lie beside it (`histograms.safetensors`), for `sluice federate CONFIG --out OUT
--deployed SETTING`, which makes the bundle.
"""

from __future__ import annotations

import logging
import time
from itertools import count
from pathlib import Path

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from contracts.atomic_write import aside
from contracts.bundle.bundle import load_weights, save_weights
from contracts.errors import FederatedError, RoundAbandoned
from contracts.summaries import summary
from contracts.summaries.federated import ServerAppSummary
from federated.clients.availability import of_config
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.stragglers import Closing
from federated.protocol.byte_count import ByteCount, both_ways, mean_of_rounds
from federated.rounds.client_evaluation import count_scores, together
from federated.rounds.public_setup import PublicSetup, public_setup
from federated.rounds.score_histograms import COUNTED, Histograms
from federated.rounds.setting_figures import round_line
from federated.rounds.settings import HISTOGRAMS, server_optimizer
from federated.rounds.training import BEST, FederatedRun

LOG = logging.getLogger(__name__)
WAIT_SECONDS = 120.0

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Raises FederatedError when too few nodes come, RoundAbandoned when rounds cannot be finished."""
    folder, setting = Path(str(context.run_config["folder"])), str(context.run_config["setting"])
    setup = public_setup(folder, setting)
    nodes = wait_for_nodes(grid, int(context.run_config["nodes"]) or setup.plan.clients)
    training = started(setup, grid, nodes, folder / "runs" / f"{setting}-flower")
    rounds = int(context.run_config["rounds"]) or setup.config.federated.of(setting).rounds
    scores = ClientScores(public_setup(folder, HISTOGRAMS), grid, nodes)
    training.run(rounds, scores.evaluate, setup.config.federated.evaluate_every,
                 lambda entry: LOG.info(round_line(entry)))
    sent, best = mean_of_rounds([entry.bytes for entry in training.history]), load_weights(training.folder / BEST)
    counted = scores.of_model(np.array(best["rows"]), np.array(best["dense"]))
    if counted:
        with aside(training.folder / COUNTED) as draft:
            save_weights(draft, together(counted).arrays())
    summary.write(training.folder, ServerAppSummary(
        rounds=len(training.history), history=tuple(training.history), bytes_per_client_round=both_ways(sent),
        bytes_per_phase=sent, best_round=training.best().round, auc_validation=training.best().auc_validation,
        auc_by_cohort=tuple(each.auc() for each in counted),
        predicted_over_observed=together(counted).predicted_over_observed() if counted else None,
    ))


class ClientScores:
    """Histograms of later rows over the nodes of a run. Empty where nothing but a ranker is trained: there is no bundle
    to make."""

    def __init__(self, setup: PublicSetup, grid: Grid, nodes: list[int]) -> None:
        federated = setup.config.federated
        self._setup, self._wanted, self._nodes = setup, federated.retrieval, range(len(nodes))
        self._exchange = FlowerExchange(
            grid, nodes, federated.timeout, ByteCount(), LOG.warning, HISTOGRAMS, Closing(federated.enough))
        self._numbers = count(1)

    def of_model(self, rows: np.ndarray, dense: np.ndarray) -> list[Histograms]:
        """One for each cohort. Raises RoundAbandoned when too few nodes are left."""
        if not self._wanted:
            return []
        return count_scores(self._setup, self._exchange, self._nodes, rows, dense, next(self._numbers))

    def evaluate(self, rows: np.ndarray, dense: np.ndarray) -> dict[str, float]:
        """AUC over all nodes' later rows, nothing where it cannot be had this time."""
        try:
            counted = self.of_model(rows, dense)
        except RoundAbandoned as error:
            LOG.warning("no evaluation: %s", error)
            return {}
        auc = together(counted).auc() if counted else None
        return {} if auc is None else {"auc_validation": auc}


def started(setup: PublicSetup, grid: Grid, nodes: list[int], folder: Path) -> FederatedRun:
    """Before its first round: the holders of every row are counted, where the averaging needs them."""
    federated, seed = setup.config.federated, setup.config.seed
    rows, dense = setup.networks.read()
    counted = ByteCount()
    training = FederatedRun(
        plan=setup.plan, exchange=FlowerExchange(
            grid, nodes, federated.timeout, counted, LOG.warning, closing=Closing(federated.enough)),
        population=len(nodes), folder=folder, seed=seed, rows=rows, dense=dense, largest_heat=federated.largest_heat,
        cohorts=federated.cohorts, available=of_config(federated, list(range(len(nodes))), seed), counted=counted,
        optimizer=server_optimizer(setup.setting, setup.config),
    )
    training.count_population()
    return training


def wait_for_nodes(grid: Grid, wanted: int, seconds: float = WAIT_SECONDS) -> list[int]:
    """Sorted ids. Raises FederatedError when fewer than wanted are there in time."""
    end = time.monotonic() + seconds
    while len(nodes := sorted(grid.get_node_ids())) < wanted:
        if time.monotonic() > end:
            raise FederatedError(
                f"{len(nodes)} nodes are connected and {wanted} are wanted; start more SuperNodes, or lower "
                "federated.clients"
            )
        time.sleep(0.2)
    return nodes
