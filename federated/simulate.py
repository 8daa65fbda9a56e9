"""All settings of a configuration, each on the same clients through a grid in this process, with figures as they go."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contracts.artifacts import LABEL, Artifacts
from contracts.config import Config
from federated import client_files, privacy_cost
from federated.availability import of_config
from federated.byte_count import ByteCount
from federated.client_app import app
from federated.flower_exchange import FlowerExchange
from federated.in_process_grid import InProcessGrid, Lose
from federated.local_training import ClientTrainer
from federated.messages import PHASES, Exchange, Message, Phase
from federated.networks import FederatedNetworks
from federated.prepare import pooled
from federated.round_client import RoundClient
from federated.round_server import RoundServer
from federated.row_space import RowSpace
from federated.settings import PARTS, local_settings, plan_of
from federated.training import FederatedRun
from models import training_loop
from models.batches import ExampleSet
from models.metrics import auc

OnProgress = Callable[[str, int, int], None]


def run(config: Config, out: Artifacts, folder: Path, on_progress: OnProgress) -> dict[str, dict[str, Any]]:
    """Setting -> its history and figures. The folder was made by federated/prepare.py; runs go on where they
    stopped."""
    return {name: run_setting(name, config, out, folder, on_progress) for name in config.federated.settings}


def run_setting(name: str, config: Config, out: Artifacts, folder: Path, on_progress: OnProgress) -> dict[str, Any]:
    _, spec = client_files.read_public(folder)
    space = RowSpace(spec, config.federated.public_up_to)
    torch.manual_seed(config.seed)
    networks = FederatedNetworks(spec, config)
    plan, counted = plan_of(name, config, space, networks), ByteCount()
    population = 1 if name == "central" else client_files.count(folder)
    exchange = _central(config, space, folder) if name == "central" else _flower(name, config, folder, counted)
    rows, dense = networks.read()
    training = FederatedRun(
        plan, exchange, population, folder / "runs" / name, config.seed, rows, dense, config.federated.largest_heat,
        available=None if name == "central" else of_config(config.federated, population, config.seed),
    )
    if plan.rule == "heat" and name != "central":
        training.heat = _heat(training)
    test = ExampleSet(out.examples("test"), spec)
    training.run(
        config.federated.rounds, lambda r, d: {"auc": _auc(networks, r, d, test)}, config.federated.evaluate_every,
        lambda entry: on_progress(f"{name}: round {entry['round']}, loss {entry['loss']:.4f}"
                                  + (f", auc {entry['auc']:.4f}" if "auc" in entry else ""),
                                  entry["round"], config.federated.rounds),
    )
    return _figures(training, counted, name, rows_held(space, folder))


def _figures(training: FederatedRun, counted: ByteCount, name: str, held: float) -> dict[str, Any]:
    history, policy = training.history, training.plan.policy
    private = PARTS[name][1] != "none"
    per_row = privacy_cost.any_rounds(policy) if private else np.inf
    dropouts: dict[str, int] = {}
    for entry in history:
        for phase, lost in entry["lost"].items():
            dropouts[phase] = dropouts.get(phase, 0) + lost
    return {
        "auc": history[-1]["auc"], "history": history, "bytes_per_client_round": counted.per_client_round(),
        "bytes_per_phase": counted.per_phase(), "epsilon": _finite(per_row),
        "epsilon_composed": _finite(per_row * held) if per_row else 0.0, "held": held,
        "epsilon_one_round": _finite(privacy_cost.one_round(policy)) if private else None,
        "rounds": len(history), "seconds_per_round": float(np.mean([entry["seconds"] for entry in history])),
        "seconds_per_phase": {
            phase: float(np.mean([entry["seconds_per_phase"][phase] for entry in history])) for phase in PHASES
        },
        "kept": float(np.mean([entry["kept"] for entry in history])), "dropouts": dropouts,
        "abandoned": sum(entry["abandoned"] for entry in history),
    }


def rows_held(space: RowSpace, folder: Path) -> float:
    """Mean number of private rows that a client's samples use: what epsilon per row composes over."""
    private = np.zeros(space.size + 1, dtype=bool)
    for start, stop in space.private_ranges():
        private[start:stop] = True
    batches = (client_files.read_client(folder, number) for number in range(client_files.count(folder)))
    return float(np.mean([private[np.unique(space.places(batch))].sum() for batch in batches]))


def _finite(epsilon: float) -> float | None:
    return epsilon if np.isfinite(epsilon) else None


def _auc(networks: FederatedNetworks, rows: np.ndarray, dense: np.ndarray, test: ExampleSet) -> float:
    networks.write(rows, dense)
    return auc(test.column(LABEL), training_loop.predict(networks.ranker, test))


def _flower(name: str, config: Config, folder: Path, counted: ByteCount) -> FlowerExchange:
    population = client_files.count(folder)
    settings: dict[str, str | int | float | bool] = {"folder": str(folder), "setting": name}
    grid = InProcessGrid(app, {node: node for node in range(population)}, settings, lost_at_random(config))
    return FlowerExchange(grid, list(range(population)), config.federated.timeout, counted)


def lost_at_random(config: Config) -> Lose:
    """Loses a client of a round with probability `lost`, spread evenly over the phases."""
    generator = random.Random(config.seed)
    share = 1.0 - (1.0 - config.federated.lost) ** (1.0 / len(PHASES))
    return lambda phase, node: generator.random() < share


def _central(config: Config, space: RowSpace, folder: Path) -> Exchange:
    """One client with everybody's rows; nothing is sent anywhere, so nothing is counted."""
    torch.manual_seed(config.seed)
    networks = FederatedNetworks(space.spec, config)
    trainer = ClientTrainer(space, config, local_settings("central", config), pooled(folder), 0)
    client = RoundClient(plan_of("central", config, space, networks), trainer, None)

    def exchange(phase: Phase, messages: Mapping[int, Message]) -> dict[int, Message]:
        return {number: client.handle(phase, message, {})[0] for number, message in messages.items()}

    return exchange


def _heat(training: FederatedRun) -> np.ndarray:
    """N / n_j of each row, from one securely counted union of the whole population; 1 for public rows."""
    server = RoundServer(training.plan, 0, training.exchange, training.rows, training.dense)
    holders = server.holders(range(training.population))
    heat = np.ones(training.plan.space)
    heat[training.plan.private_places] = training.population / np.maximum(holders, 1)
    return heat
