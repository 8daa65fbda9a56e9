"""The Flower ServerApp: rounds of one setting over whatever nodes the grid has, from a prepared folder.

Run configuration: `folder` (made by `sluice federate`), `setting`, `rounds` (0: as configured), `nodes` (how many must
be there before the first round; 0: as many as a round has clients). The model of each completed round lies in
FOLDER/runs/SETTING-flower; started again, the run goes on after it.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from contracts.errors import FederatedError
from contracts.summaries import summary
from contracts.summaries.federated import ServerAppSummary
from federated.clients.availability import of_config
from federated.flower.flower_exchange import FlowerExchange
from federated.protocol.byte_count import ByteCount, both_ways, mean_of_rounds
from federated.rounds.public_setup import PublicSetup, public_setup
from federated.rounds.setting_figures import round_line
from federated.rounds.training import FederatedRun

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
    training.run(rounds, lambda rows, dense: {}, rounds, lambda entry: LOG.info(round_line(entry)))
    sent = mean_of_rounds([entry.bytes for entry in training.history])
    summary.write(training.folder, ServerAppSummary(
        rounds=len(training.history), history=tuple(training.history), bytes_per_client_round=both_ways(sent),
        bytes_per_phase=sent,
    ))


def started(setup: PublicSetup, grid: Grid, nodes: list[int], folder: Path) -> FederatedRun:
    """Before its first round: the holders of every row are counted, where the averaging needs them."""
    federated, seed = setup.config.federated, setup.config.seed
    rows, dense = setup.networks.read()
    counted = ByteCount()
    training = FederatedRun(
        plan=setup.plan, exchange=FlowerExchange(grid, nodes, federated.timeout, counted, LOG.warning),
        population=len(nodes), folder=folder, seed=seed, rows=rows, dense=dense, largest_heat=federated.largest_heat,
        cohorts=federated.cohorts, available=of_config(federated, list(range(len(nodes))), seed), counted=counted,
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
