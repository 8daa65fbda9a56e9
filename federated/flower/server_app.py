"""The Flower ServerApp: rounds of one setting over whatever nodes the grid has, from a prepared folder.

Run configuration: `folder` (made by `sluice federate`), `setting`, `rounds` (0: as configured), `nodes` (how many must
be there before the first round; 0: as many as a round has clients). Later rounds ask those that are there then
(federated/flower/seats.py). The model of each completed round lies in
FOLDER/runs/SETTING-flower; started again, the run goes on after it. Nodes evaluate it on rows that they do not
train on; histograms of the best round lie beside it (`histograms.safetensors`), for `sluice federate CONFIG --out OUT
--deployed SETTING`, which makes the bundle.
"""

from __future__ import annotations

import logging
import time
from dataclasses import asdict
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
from federated.clients import client_files
from federated.clients.availability import Availability, of_config
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.object_pulls import ask_sooner
from federated.flower.reply_guard import guard
from federated.flower.seats import Seats
from federated.flower.stragglers import Closing
from federated.rounds.byte_count import ByteCount, both_ways, mean_of_rounds
from federated.rounds.client_evaluation import count_scores, together
from federated.rounds.personal_scores import figures
from federated.rounds.public_setup import PublicSetup, public_setup
from federated.rounds.run_folder import BEST
from federated.rounds.score_histograms import AT_THE_END, COUNTED, Histograms
from federated.rounds.setting_figures import privacy_of, round_line, warnings_of
from federated.rounds.settings import COUNTING, HISTOGRAMS, PERSONAL, SCORES, server_optimizer
from federated.rounds.training import FederatedRun

LOG = logging.getLogger(__name__)
WAIT_SECONDS = 120.0

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Raises FederatedError when too few nodes come, RoundAbandoned when rounds cannot be finished."""
    guard()
    ask_sooner()
    folder, setting = Path(str(context.run_config["folder"])), str(context.run_config["setting"])
    setup = public_setup(folder, setting)
    seats = Seats(grid, client_files.identities(folder), Closing(setup.config.federated.enough), LOG.warning)
    wait_for_clients(seats, int(context.run_config["nodes"]) or setup.plan.clients)
    training = started(setup, seats, folder / "runs" / f"{setting}-flower")
    rounds = int(context.run_config["rounds"]) or setup.config.federated.of(setting).rounds
    scores = ClientScores(folder, seats)
    training.run(rounds, scores.evaluate, setup.config.federated.evaluate_every,
                 lambda entry: LOG.info(round_line(entry)))
    sent, best = mean_of_rounds([entry.bytes for entry in training.history]), load_weights(training.folder / BEST)
    counted = scores.at_the_end(np.array(best["rows"]), np.array(best["dense"]))
    heads = scores.of_heads(np.array(best["rows"]), np.array(best["dense"]))
    if counted:
        with aside(training.folder / COUNTED) as draft:
            save_weights(draft, together(counted).arrays())
    spent = privacy_of(training, setup.config.federated.delta)
    warnings = warnings_of(setting, spent.single_holder_seen, min(entry.clients for entry in training.history))
    for words in warnings:
        LOG.warning(words)
    summary.write(training.folder, ServerAppSummary(
        rounds=len(training.history), history=tuple(training.history), bytes_per_client_round=both_ways(sent),
        bytes_per_phase=sent, best_round=training.best().round, auc_validation=training.best().auc_validation,
        auc_by_cohort=tuple(each.auc() for each in counted),
        predicted_over_observed=together(counted).predicted_over_observed() if counted else None,
        predicted_over_observed_by_cohort=tuple(each.predicted_over_observed() for each in counted),
        personal=figures(heads) if heads else None, **asdict(spent), warnings=warnings,
    ))


class ClientScores:
    """What nodes that are there count of their later rows. Where a ranker alone is trained there is no bundle to make,
    and nothing is counted but what heads of their own give."""

    def __init__(self, folder: Path, seats: Seats) -> None:
        self._setups = {counts: public_setup(folder, counts) for counts in COUNTING}
        federated = self._setups[SCORES].config.federated
        self._wanted = {SCORES: federated.retrieval, HISTOGRAMS: federated.retrieval,
                        PERSONAL: federated.personal_steps > 0}
        self._seats = seats
        self._numbers = count(1)

    def evaluate(self, rows: np.ndarray, dense: np.ndarray) -> dict[str, float]:
        """AUC over all nodes' later rows, nothing where it cannot be had this time."""
        try:
            counted = self._counted(SCORES, rows, dense, next(self._numbers))
        except RoundAbandoned as error:
            LOG.warning("no evaluation: %s", error)
            return {}
        auc = together(counted).auc() if counted else None
        return {} if auc is None else {"auc_validation": auc}

    def at_the_end(self, rows: np.ndarray, dense: np.ndarray) -> list[Histograms]:
        """With the counts of items, one for each cohort. Raises RoundAbandoned when too few nodes are left."""
        return self._counted(HISTOGRAMS, rows, dense, AT_THE_END)

    def of_heads(self, rows: np.ndarray, dense: np.ndarray) -> list[Histograms]:
        """Of the common head and of each client's own, which it keeps; nothing where none is configured. Raises
        RoundAbandoned when too few nodes are left."""
        return self._counted(PERSONAL, rows, dense, AT_THE_END)

    def _counted(self, counts: str, rows: np.ndarray, dense: np.ndarray, number: int) -> list[Histograms]:
        if not self._wanted[counts]:
            return []
        setup = self._setups[counts]
        exchange = FlowerExchange(
            self._seats.grid, self._seats, setup.plan.timeout, ByteCount(), LOG.warning, counts, self._seats.closing)
        return count_scores(setup, exchange, self._seats.there(), rows, dense, number)


def started(setup: PublicSetup, seats: Seats, folder: Path) -> FederatedRun:
    """Before its first round: the holders of every row are counted, where the averaging needs them. Its population is
    the published list of clients, whoever of it is there."""
    federated, seed = setup.config.federated, setup.config.seed
    rows, dense = setup.networks.read()
    counted = ByteCount()
    training = FederatedRun(
        plan=setup.plan, exchange=FlowerExchange(
            seats.grid, seats, federated.timeout, counted, LOG.warning, closing=seats.closing),
        population=len(seats.published), folder=folder, seed=seed, rows=rows, dense=dense,
        largest_heat=federated.largest_heat, cohorts=federated.cohorts, counted=counted,
        available=_available(setup, seats, WAIT_SECONDS), there_now=_available(setup, seats, 0.0),
        optimizer=server_optimizer(setup.setting, setup.config), overlap=setup.plan.overlap,
    )
    training.count_population(seats.there())
    return training


def _available(setup: PublicSetup, seats: Seats, seconds: float) -> Availability:
    """Who is there of those that the configured pattern names; nodes are waited for so long."""
    pattern = of_config(setup.config.federated, list(range(len(seats.published))), setup.config.seed)

    def available(number: int) -> list[int]:
        there = set(wait_for_clients(seats, setup.plan.min_clients, seconds))
        return [client for client in pattern(number) if client in there]

    return available


def wait_for_clients(seats: Seats, wanted: int, seconds: float = WAIT_SECONDS) -> list[int]:
    """Sorted numbers. Raises FederatedError when fewer than wanted are there in time."""
    end = time.monotonic() + seconds
    while len(there := seats.there()) < wanted:
        if time.monotonic() >= end:
            raise FederatedError(
                f"nodes of {len(there)} clients are connected and {wanted} are wanted; start more SuperNodes, or lower "
                "federated.clients"
            )
        time.sleep(0.2)
    return there
