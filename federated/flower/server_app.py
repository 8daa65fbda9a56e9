"""The Flower ServerApp: rounds of one setting over whatever nodes the grid has, from a prepared folder.

Run configuration: `folder` (made by `sluice federate`), `setting`, `rounds` (0: as configured), `nodes` (how many must
be there before the first round; 0: as many as a round has clients). The model of each completed round lies in
FOLDER/runs/SETTING-flower; started again, the run goes on after it.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

import torch
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from contracts import summary
from contracts.errors import FederatedError
from federated.clients import client_files
from federated.clients.availability import of_config
from federated.clients.networks import FederatedNetworks
from federated.clients.row_space import RowSpace
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.simulate import said
from federated.protocol.byte_count import ByteCount, both_ways, mean_of_rounds
from federated.rounds.settings import plan_of
from federated.rounds.training import FederatedRun

LOG = logging.getLogger(__name__)
WAIT_SECONDS = 120.0

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Raises FederatedError when too few nodes come, RoundAbandoned when rounds cannot be finished."""
    folder, setting = Path(str(context.run_config["folder"])), str(context.run_config["setting"])
    config, spec = client_files.read_public(folder)
    space = RowSpace(spec, config.federated.public_up_to)
    torch.manual_seed(config.seed)
    networks = FederatedNetworks(spec, config)
    plan = plan_of(setting, config, space, networks, client_files.identities(folder))
    counted = ByteCount()
    nodes = wait_for_nodes(grid, int(context.run_config["nodes"]) or plan.clients)
    exchange = FlowerExchange(grid, nodes, config.federated.timeout, counted, LOG.warning)
    rows, dense = networks.read()
    run = FederatedRun(
        plan, exchange, len(nodes), folder / "runs" / f"{setting}-flower", config.seed, rows, dense,
        config.federated.largest_heat,
        available=of_config(config.federated, list(range(len(nodes))), config.seed), counted=counted,
    )
    run.count_population()
    rounds = int(context.run_config["rounds"]) or config.federated.of(setting).rounds
    run.run(rounds, lambda rows, dense: {}, rounds, lambda entry: LOG.info(said(entry)))
    sent = mean_of_rounds([entry["bytes"] for entry in run.history])
    summary.write(run.folder, {
        "rounds": len(run.history), "history": run.history, "bytes_per_client_round": both_ways(sent),
        "bytes_per_phase": sent,
    })


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
