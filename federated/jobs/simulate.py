"""All settings of a configuration, each on the same clients through a grid in this process, with figures as they go."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from contracts.artifacts import LABEL, Artifacts
from contracts.bundle.bundle import load_weights
from contracts.config.config import Config
from contracts.errors import ConfigError, RoundAbandoned
from contracts.progress import OnProgress
from contracts.summaries.federated import SettingFigures
from federated.clients import client_files
from federated.clients.availability import Availability, of_config
from federated.clients.local_training import ClientTrainer
from federated.clients.networks import FederatedNetworks
from federated.clients.prepare import pooled
from federated.clients.row_space import RowSpace
from federated.device.direct_exchange import DirectExchange
from federated.device.own_client import OwnClients, client_of
from federated.flower.client_app import UNMASKED, app_of
from federated.flower.flower_exchange import FlowerExchange, Note
from federated.flower.in_process_grid import InProcessGrid, Lose
from federated.protocol.messages import PHASES, Exchange
from federated.protocol.round_client import RoundClient
from federated.rounds.byte_count import ByteCount
from federated.rounds.client_evaluation import count_scores
from federated.rounds.personal_scores import figures
from federated.rounds.public_setup import PublicSetup, public_setup
from federated.rounds.round_watch import RoundWatch
from federated.rounds.run_folder import BEST
from federated.rounds.score_histograms import AT_THE_END, Histograms
from federated.rounds.setting_figures import figures_of, round_line
from federated.rounds.settings import PERSONAL, local_settings, server_optimizer
from federated.rounds.training import FederatedRun
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet
from models.training import fitting

CENTRAL = "central"
WINDOWS = ("validation", "test")


def simulate_settings(
    config: Config, out: Artifacts, folder: Path, on_progress: OnProgress, wire: bool = True
) -> dict[str, SettingFigures]:
    """Setting -> its history and figures. The folder was made by federated/clients/prepare.py; runs go on where they
    stopped."""
    return {name: _figures(name, config, out, folder, on_progress, wire) for name in config.federated.settings}


def _figures(
    name: str, config: Config, out: Artifacts, folder: Path, on_progress: OnProgress, wire: bool
) -> SettingFigures:
    setup = public_setup(folder, name, config)
    watched = setup.plan.masked and name != CENTRAL
    watch = RoundWatch(setup, folder, config.federated.of(name).rounds) if watched else None
    training = run_setting(name, config, out, folder, on_progress, wire=wire, watch=watch)
    wanted = config.federated.personal_steps and name != CENTRAL
    return figures_of(training, config, folder, watch.curve() if watch is not None else None,
                      figures(counted(PERSONAL, training.folder, config, folder)) if wanted else None)


def counted(counts: str, run: Path, config: Config, folder: Path) -> list[Histograms]:
    """One of COUNTING, at the end of the rounds of `run`: of its best model, by all clients of the folder."""
    setup, best = public_setup(folder, counts, config), load_weights(run / BEST)
    clients = list(range(client_files.count(folder)))
    grid = InProcessGrid(app_of(OwnClients()), {node: node for node in clients},
                         {"folder": str(folder), "setting": counts})
    exchange = FlowerExchange(grid, clients, config.federated.timeout, ByteCount())
    return count_scores(setup, exchange, clients, best["rows"], best["dense"], AT_THE_END)


def run_setting(
    name: str, config: Config, out: Artifacts, folder: Path, on_progress: OnProgress,
    windows: Sequence[str] = WINDOWS, wire: bool = True, watch: RoundWatch | None = None,
) -> FederatedRun:
    """All rounds of one setting; the model is evaluated on `windows` as it goes. What is chosen by figures may look at
    validation alone. `watch` sees what the server does. Without the `wire` messages are handed over instead of
    serialised and counted, and nothing is lost on the way. Raises RoundAbandoned when rounds cannot be finished."""
    setup, counted, notes = public_setup(folder, name, config), ByteCount(), list[str]()
    rows, dense = setup.networks.read()
    training = FederatedRun(
        plan=setup.plan, exchange=_exchange(name, setup, folder, wire, counted, notes.append),
        population=1 if name == CENTRAL else client_files.count(folder), folder=folder / "runs" / name,
        seed=config.seed, rows=rows, dense=dense, largest_heat=config.federated.largest_heat, counted=counted,
        available=_availability(name, setup, folder), cohorts=config.federated.cohorts and name != CENTRAL,
        optimizer=server_optimizer(name, config),
    )
    if watch is not None:
        training.on_opened = watch
    if name != CENTRAL:
        training.count_population()
    examples = {window: ExampleSet(out.examples(window), setup.space.spec) for window in windows}
    rounds, every = config.federated.of(name).rounds, 1 if name == CENTRAL else config.federated.evaluate_every
    try:
        training.run(
            rounds, lambda rows, dense: aucs(setup.networks, rows, dense, examples), every,
            lambda entry: on_progress(f"{name}: {round_line(entry)}", entry.round, rounds),
        )
    except RoundAbandoned as error:
        raise RoundAbandoned(f"{error}; the last that a client said: {notes[-1]}" if notes else str(error)) from None
    return training


def lost_at_random(config: Config) -> Lose:
    """Loses a client of a round with probability `dropout_rate`, spread evenly over the phases."""
    generator = random.Random(config.seed)
    share = 1.0 - (1.0 - config.federated.dropout_rate) ** (1.0 / len(PHASES))
    return lambda phase, node: generator.random() < share


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


def _availability(name: str, setup: PublicSetup, folder: Path) -> Availability | None:
    if name == CENTRAL:
        return None
    return of_config(setup.config.federated, kinds(setup.config, setup.space, folder), setup.config.seed)


def _exchange(
    name: str, setup: PublicSetup, folder: Path, wire: bool, counted: ByteCount, note: Note
) -> Exchange:
    if name == CENTRAL:
        return DirectExchange(lambda number: _central_client(setup, folder))
    if not wire:
        return DirectExchange(lambda number: client_of(setup, folder, number))
    nodes = list(range(client_files.count(folder)))
    grid = InProcessGrid(
        app_of(OwnClients()), {node: node for node in nodes}, {"folder": str(folder), "setting": name},
        lost_at_random(setup.config), {UNMASKED: True},  # the baselines among the settings are trained here
    )
    return FlowerExchange(grid, nodes, setup.config.federated.timeout, counted, note)


def _central_client(setup: PublicSetup, folder: Path) -> RoundClient:
    """One client with everybody's rows."""
    local = local_settings(CENTRAL, setup.config)
    return RoundClient(setup.plan, ClientTrainer(setup.space, setup.config, local, pooled(folder), 0), None)


def aucs(
    networks: FederatedNetworks, rows: np.ndarray, dense: np.ndarray, examples: Mapping[str, ExampleSet]
) -> dict[str, float]:
    """Of the ranker with these rows and dense part on each window, as figures of a round name them."""
    networks.write(rows, dense)
    return {
        "auc" if window == "test" else f"auc_{window}": auc(
            there.column(LABEL), fitting.predict(networks.ranker, there))
        for window, there in examples.items()
    }
