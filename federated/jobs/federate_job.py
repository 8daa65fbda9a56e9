"""The step `sluice federate`: clients from the log, rounds of every setting, figures, and the parts of a bundle.

Needs the features of the log (`sluice features`). Writes FEDERATED/, and parts of the served setting in
FEDERATED/parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from contracts import summary
from contracts.artifacts import Artifacts
from contracts.bundle.bundle import load_weights
from contracts.config.config import Config
from contracts.errors import ConfigError
from federated.clients import client_files, prepare
from federated.clients.networks import FederatedNetworks
from federated.flower import simulate
from federated.flower.client_app import app
from federated.flower.flower_exchange import FlowerExchange
from federated.flower.in_process_grid import InProcessGrid
from federated.jobs import model_parts
from federated.protocol.byte_count import ByteCount
from federated.protocol.round_server import RoundServer
from federated.rounds.score_histograms import Histograms, histogram_plan, item_count, model_as_vector
from federated.rounds.settings import HISTOGRAMS
from federated.rounds.training import BEST
from models.tracking.tracking import Tracker

FOLDER = "federated"
TRACKED = ("loss", "auc", "auc_validation", "kept", "seconds")
OnProgress = Callable[[str, int, int], None]


def run(
    config: Config, out: Artifacts, on_progress: OnProgress, bundle: bool = True, wire: bool = True
) -> dict[str, Any]:
    """The figures, which are also written to FEDERATED/summary.json."""
    started = time.perf_counter()
    if bundle and not config.federated.retrieval:
        raise ConfigError("federated.retrieval is false, so nothing is trained to retrieve with and there is no "
                          "bundle; set it to true, or run `sluice bench federated --auc`")
    if bundle and not config.federated.masked:
        raise ConfigError("federated.masked is false, which opens every client's update to the server and is for "
                          "experiments; set it to true, or run `sluice bench federated --auc`")
    folder = out.out / FOLDER
    clients = prepare.prepare(config, out, folder)
    found = simulate.run(config, out, folder, on_progress, wire)
    _track(config, out, found)
    if bundle:
        on_progress("score histograms", 0, 1)
        write_parts(config, out, folder)
    result = {"federated": summary_of(config, found), "clients": clients, "settings": found,
              "seconds": round(time.perf_counter() - started, 1)}
    summary.write(folder, result)
    return result


def served_config(config: Config) -> Config:
    """What a bundle of the parts is assembled with: pre-ranking by the towers that the same rounds trained."""
    return config.model_copy(update={"prerank": config.prerank.model_copy(update={"kind": "towers"})})


def summary_of(config: Config, found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    secure = {name: figures for name, figures in found.items() if name != "central"}
    return {
        "auc": {name: figures["auc"] for name, figures in found.items()},
        "bytes_per_client_round": {name: figures["bytes_per_client_round"] for name, figures in secure.items()},
        "bytes_by_formula": {name: figures["bytes_by_formula"] for name, figures in secure.items()},
        "epsilon": {name: figures["epsilon"] for name, figures in secure.items()},
        "epsilon_composed": {name: figures["epsilon_composed"] for name, figures in secure.items()},
        "epsilon_noise": {name: figures["epsilon_noise"] for name, figures in secure.items()},
        "auc_validation": {name: figures["auc_validation"] for name, figures in found.items()},
        "kept": {name: figures["kept"] for name, figures in found.items()},
        "seconds_per_round": found[config.federated.served]["seconds_per_round"],
        "dropouts": sum(sum(figures["dropouts"].values()) for figures in secure.values()),
        "served": config.federated.served,
    }


def write_parts(config: Config, out: Artifacts, folder: Path) -> Artifacts:
    """From the best round of the served setting; calibration comes from one more round over all clients."""
    _, spec = client_files.read_public(folder)
    torch.manual_seed(config.seed)
    networks = FederatedNetworks(spec, config)
    stored = load_weights(folder / "runs" / config.federated.served / BEST)
    rows, dense = stored["rows"], stored["dense"]
    clients = client_files.count(folder)
    plan = histogram_plan(config, spec, networks, clients, client_files.identities(folder))
    grid = InProcessGrid(app, {node: node for node in range(clients)}, {"folder": str(folder), "setting": HISTOGRAMS})
    exchange = FlowerExchange(grid, list(range(clients)), config.federated.timeout, ByteCount())
    nothing = rows[:0, :1]
    opened = RoundServer(plan, 1, exchange, nothing, model_as_vector(rows, dense, plan.dense)).run(range(clients))
    networks.write(rows, dense)
    counted = Histograms.of_flat(opened.dense, item_count(spec))
    return model_parts.write(config, out, spec, networks, counted, folder / "parts")


def _track(config: Config, out: Artifacts, found: dict[str, dict[str, Any]]) -> None:
    with Tracker(out.out, config.name) as tracker:
        for name, figures in found.items():
            run = tracker.start(f"federated {name}", {"federated": config.federated.model_dump(mode="json")})
            for entry in figures["history"]:
                run.metrics({key: entry[key] for key in TRACKED if key in entry}, entry["round"])
            run.end()
