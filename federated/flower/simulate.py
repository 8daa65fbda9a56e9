"""All settings of a configuration, each on the same clients through a grid in this process, with figures as they go."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contracts.artifacts import LABEL, Artifacts
from contracts.config.config import Config
from contracts.errors import ConfigError, RoundAbandoned
from federated.clients import client_files
from federated.clients.availability import of_config
from federated.clients.local_training import ClientTrainer
from federated.clients.networks import FederatedNetworks
from federated.clients.prepare import pooled
from federated.clients.row_space import RowSpace
from federated.flower.client_app import UNMASKED, app, client_of
from federated.flower.flower_exchange import FlowerExchange, Note
from federated.flower.in_process_grid import InProcessGrid, Lose
from federated.privacy import privacy_cost, skellam
from federated.protocol.byte_count import ByteCount, both_ways, mean_of_rounds, predicted
from federated.protocol.messages import PHASES, Exchange, Message, Phase
from federated.protocol.plan import TAIL
from federated.protocol.round_client import RoundClient
from federated.rounds.settings import local_settings, plan_of
from federated.rounds.training import FederatedRun
from federated.secure_aggregation.neighbour_graph import degree
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet
from models.training import loop as training_loop

OnProgress = Callable[[str, int, int], None]
WINDOWS = ("validation", "test")


def run(
    config: Config, out: Artifacts, folder: Path, on_progress: OnProgress, wire: bool = True
) -> dict[str, dict[str, Any]]:
    """Setting -> its history and figures. The folder was made by federated/clients/prepare.py; runs go on where they
    stopped."""
    return {
        name: figures(run_setting(name, config, out, folder, on_progress, wire=wire), name, config, folder)
        for name in config.federated.settings
    }


def run_setting(
    name: str, config: Config, out: Artifacts, folder: Path, on_progress: OnProgress,
    windows: Sequence[str] = WINDOWS, wire: bool = True,
) -> FederatedRun:
    """All rounds of one setting; the model is judged on `windows` as it goes. What is chosen by figures may look at
    validation alone. Without the `wire` messages are handed over instead of serialised and counted, and nothing is lost
    on the way."""
    _, spec = client_files.read_public(folder)
    space = RowSpace(spec, config.federated.public_up_to)
    torch.manual_seed(config.seed)
    networks = FederatedNetworks(spec, config)
    plan = plan_of(name, config, space, networks, client_files.identities(folder))
    counted = ByteCount()
    central, heard = name == "central", list[str]()
    if central:
        exchange = _handed_over(lambda number: _central(config, space, folder))
    elif wire:
        exchange = _flower(name, config, folder, counted, heard.append)
    else:
        exchange = _handed_over(lambda number: client_of(folder, name, number))
    rows, dense = networks.read()
    training = FederatedRun(
        plan, exchange, 1 if central else client_files.count(folder), folder / "runs" / name, config.seed, rows, dense,
        config.federated.largest_heat, counted=counted,
        available=None if central else of_config(config.federated, kinds(config, space, folder), config.seed),
    )
    if not central:
        training.count_population()
    examples = {window: ExampleSet(out.examples(window), spec) for window in windows}
    rounds, every = config.federated.of(name).rounds, 1 if central else config.federated.evaluate_every
    try:
        training.run(
            rounds, lambda r, d: _judged(networks, r, d, examples), every,
            lambda entry: on_progress(f"{name}: {said(entry)}", entry["round"], rounds),
        )
    except RoundAbandoned as error:
        raise RoundAbandoned(f"{error}; the last that a client said: {heard[-1]}" if heard else str(error)) from None
    return training


def figures(training: FederatedRun, name: str, config: Config, folder: Path) -> dict[str, Any]:
    """Quality is that of the round with the best validation AUC, whose model is served."""
    history, policy, best = training.history, training.plan.policy, training.best()
    _, spec = client_files.read_public(folder)
    held = rows_held(RowSpace(spec, config.federated.public_up_to), folder)
    private = training.plan.masking != "none"
    per_row = privacy_cost.any_rounds(policy) if private else np.inf
    dropouts: dict[str, int] = {}
    for entry in history:
        for phase, lost in entry["lost"].items():
            dropouts[phase] = dropouts.get(phase, 0) + lost
    sent = mean_of_rounds([entry["bytes"] for entry in history])
    formula = by_formula(training) if sent else {}
    return {
        "auc": best.get("auc"), "auc_validation": best.get("auc_validation"), "best_round": best["round"],
        "history": history, "bytes_per_client_round": both_ways(sent), "bytes_per_phase": sent,
        "bytes_by_formula": sum(map(sum, formula.values())), "bytes_by_formula_per_phase": formula,
        "epsilon": _finite(per_row), "epsilon_composed": _finite(per_row * held) if per_row else 0.0, "held": held,
        "epsilon_one_round": _finite(privacy_cost.one_round(policy)) if private else None,
        "epsilon_noise": _noise_epsilon(training, config),
        "rounds": len(history), "seconds_per_round": float(np.mean([entry["seconds"] for entry in history])),
        "seconds_per_phase": {
            phase: float(np.mean([entry["seconds_per_phase"][phase] for entry in history])) for phase in PHASES
        },
        "kept": _mean_known(history, "kept"), "dropouts": dropouts,
        "abandoned": sum(entry["abandoned"] for entry in history),
    }


def said(entry: Mapping[str, Any]) -> str:
    """A round in a line: what is known of loss and AUC."""
    known = {"loss": entry["loss"], "auc": entry.get("auc_validation")}
    return f"round {entry['round']}" + "".join(
        f", {name} {value:.4f}" for name, value in known.items() if value is not None)


def _mean_known(history: Sequence[Mapping[str, Any]], key: str) -> float | None:
    known = [entry[key] for entry in history if entry[key] is not None]
    return float(np.mean(known)) if known else None


def by_formula(training: FederatedRun) -> dict[str, tuple[float, float]]:
    """Payload (up, down) of a client in each phase at the mean of the rounds' unions and rows, with nobody lost."""
    plan, history = training.plan, training.history
    clients = min(plan.clients, training.population)
    return predicted(
        code=plan.code.size if plan.contributors <= 1 else len(plan.private_places), private=len(plan.private_places),
        union=int(np.mean([entry["union"] for entry in history])),
        rows=float(np.mean([entry["declared"] for entry in history])), dense=plan.dense, width=plan.width,
        neighbours=degree(clients, plan.neighbours), clients=clients, per_row=plan.masking == "per_row",
        masked=plan.masked, choose=not plan.policy.public_rows,
    )


def _noise_epsilon(training: FederatedRun, config: Config) -> float | None:
    """Of all opened sums of updates together, for a client that took part in each; None without noise. The fewest
    uploads of a round bound its noise, less one: a client knows its own."""
    plan = training.plan
    if not plan.noise:
        return None
    fewest = min(entry["clients"] for entry in training.history) - 1
    words = plan.dense + TAIL + plan.space * (plan.width + 1)
    l1 = min(plan.noise_norm * np.sqrt(words), plan.noise_norm**2)
    return skellam.epsilon(
        fewest * plan.noise, plan.noise_norm, l1, len(training.history), config.federated.delta
    )


def kinds(config: Config, space: RowSpace, folder: Path) -> list[int]:
    """What clients come together by: the id of `availability_by` in their first row, else each alone.

    Raises ConfigError on a field that no row has one id of."""
    name, count = config.federated.availability_by, client_files.count(folder)
    if not name:
        return list(range(count))
    blocks = {"request": space.spec.block_ids("request"), "candidate": space.spec.block_ids("candidate")}
    place = next(((side, slot.start) for side, slots in blocks.items() for slot in slots if slot.name == name), None)
    if place is None:
        raise ConfigError(f"federated.availability_by is {name!r}, which is no field of the clients' rows; they have "
                          f"{[slot.name for slots in blocks.values() for slot in slots]}")
    return [int(getattr(client_files.read_client(folder, number), place[0]).ids[0, place[1]])
            for number in range(count)]


def rows_held(space: RowSpace, folder: Path) -> float:
    """Mean number of private rows that a client's samples use: what epsilon per row composes over."""
    private = np.zeros(space.size + 1, dtype=bool)
    for start, stop in space.private_ranges():
        private[start:stop] = True
    batches = (client_files.read_client(folder, number) for number in range(client_files.count(folder)))
    return float(np.mean([private[np.unique(space.places(batch))].sum() for batch in batches]))


def _finite(epsilon: float) -> float | None:
    return epsilon if np.isfinite(epsilon) else None


def _judged(
    networks: FederatedNetworks, rows: np.ndarray, dense: np.ndarray, examples: Mapping[str, ExampleSet]
) -> dict[str, float]:
    networks.write(rows, dense)
    return {
        "auc" if window == "test" else f"auc_{window}": auc(
            there.column(LABEL), training_loop.predict(networks.ranker, there))
        for window, there in examples.items()
    }


def _flower(name: str, config: Config, folder: Path, counted: ByteCount, note: Note) -> FlowerExchange:
    population = client_files.count(folder)
    settings: dict[str, str | int | float | bool] = {"folder": str(folder), "setting": name}
    grid = InProcessGrid(app, {node: node for node in range(population)}, settings, lost_at_random(config),
                         {UNMASKED: True})  # the baselines among the settings are trained here
    return FlowerExchange(grid, list(range(population)), config.federated.timeout, counted, note)


def lost_at_random(config: Config) -> Lose:
    """Loses a client of a round with probability `dropout_rate`, spread evenly over the phases."""
    generator = random.Random(config.seed)
    share = 1.0 - (1.0 - config.federated.dropout_rate) ** (1.0 / len(PHASES))
    return lambda phase, node: generator.random() < share


def _central(config: Config, space: RowSpace, folder: Path) -> RoundClient:
    """One client with everybody's rows."""
    torch.manual_seed(config.seed)
    networks = FederatedNetworks(space.spec, config)
    trainer = ClientTrainer(space, config, local_settings("central", config), pooled(folder), 0)
    return RoundClient(plan_of("central", config, space, networks), trainer, None)


def _handed_over(client_of: Callable[[int], RoundClient]) -> Exchange:
    """Clients in this process without a wire: nothing is lost and nothing counted."""
    made = cache(client_of)
    memory: dict[int, Message] = defaultdict(dict)

    def exchange(phase: Phase, messages: Mapping[int, Message]) -> dict[int, Message]:
        replies = {}
        for number, message in messages.items():
            replies[number], memory[number] = made(number).handle(phase, message, memory[number])
        return replies

    return exchange
