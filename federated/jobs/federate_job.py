"""The job `sluice federate`: clients from the log, rounds of every setting, figures, and the parts of a bundle.

Needs the features of the log (`sluice features`). Writes FEDERATED/, and parts of the served setting in
FEDERATED/parts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from contracts.artifacts import Artifacts
from contracts.bundle.bundle import load_weights
from contracts.config.config import Config
from contracts.errors import ConfigError, DataError
from contracts.progress import OnProgress
from contracts.summaries import summary
from contracts.summaries.federated import FederateSummary, SettingFigures
from federated.clients import prepare
from federated.jobs import model_parts
from federated.jobs.simulate import counted, simulate_settings
from federated.rounds.client_evaluation import together
from federated.rounds.public_setup import PublicSetup, public_setup
from federated.rounds.run_folder import BEST
from federated.rounds.score_histograms import COUNTED, Histograms
from federated.rounds.setting_figures import ledger_figures, side_by_side
from federated.rounds.settings import HISTOGRAMS
from models.tracking.tracking import Tracker

FOLDER = "federated"
TRACKED = {"loss", "auc", "auc_validation", "kept", "seconds"}


def federate(
    config: Config, out: Artifacts, on_progress: OnProgress, bundle: bool = True, wire: bool = True,
    memory: Path | None = None,
) -> FederateSummary:
    """Returns what it writes to FEDERATED/summary.json. Raises ConfigError where a bundle is wanted of settings that
    give none. `memory`: see federated/clients/prepare.py."""
    started = time.perf_counter()
    if bundle and not config.federated.retrieval:
        raise ConfigError("federated.retrieval is false, so nothing is trained to retrieve with and there is no "
                          "bundle; set it to true, or run `sluice bench federated --auc`")
    if bundle and not config.federated.masked:
        raise ConfigError("federated.masked is false, which opens every client's update to the server and is for "
                          "experiments; set it to true, or run `sluice bench federated --auc`")
    folder = out.out / FOLDER
    clients = prepare.prepare(config, out, folder, memory)
    settings = simulate_settings(config, out, folder, on_progress, wire)
    _track(config, out, settings)
    if bundle:
        on_progress("score histograms", 0, 1)
        write_parts(config, out, folder)
    made = FederateSummary(
        federated=side_by_side(config, settings), clients=clients, settings=settings,
        seconds=round(time.perf_counter() - started, 1),
        ledger=ledger_figures(folder, config.federated.delta),
    )
    summary.write(folder, made)
    return made


def served_config(config: Config) -> Config:
    """What a bundle of the parts is assembled with: pre-ranking by the towers that the same rounds trained, and no
    further channels of retrieval, which learn from everybody's histories in one place."""
    return config.model_copy(update={"prerank": config.prerank.model_copy(update={"kind": "towers"}),
                                     "retrieve": config.retrieve.model_copy(update={"channels": {}})})


def write_parts(config: Config, out: Artifacts, folder: Path) -> Artifacts:
    """From the best round of the served setting; calibration comes from one more round over all clients."""
    run = folder / "runs" / config.federated.served
    histograms = together(counted(HISTOGRAMS, run, config, folder))
    return _parts(public_setup(folder, HISTOGRAMS, config), load_weights(run / BEST), histograms, out, folder)


def deployed_parts(config: Config, out: Artifacts, setting: str) -> Artifacts:
    """From the best round that a Flower ServerApp has trained in OUT/federated, and what its nodes counted. Raises
    DataError where there is none, ConfigError on a setting that the folder was not prepared for."""
    folder = out.out / FOLDER
    run = folder / "runs" / f"{setting}-flower"
    for file in (BEST, COUNTED):
        if not (run / file).exists():
            raise DataError(f"{run / file} is not there; `flwr run .` writes it at its end, with "
                            f"setting=\"{setting}\", federated.retrieval = true and enough nodes")
    if setting not in config.federated.settings:
        raise ConfigError(f"setting {setting!r} is not among federated.settings {list(config.federated.settings)}")
    histograms = Histograms(**{name: np.array(each) for name, each in load_weights(run / COUNTED).items()})
    return _parts(public_setup(folder, HISTOGRAMS, config), load_weights(run / BEST), histograms, out, folder)


def _parts(
    setup: PublicSetup, model: Mapping[str, np.ndarray], histograms: Histograms, out: Artifacts, folder: Path
) -> Artifacts:
    setup.networks.write(np.array(model["rows"]), np.array(model["dense"]))
    return model_parts.write(setup.config, out, setup.space.spec, setup.networks, histograms, folder / "parts")


def _track(config: Config, out: Artifacts, settings: Mapping[str, SettingFigures]) -> None:
    with Tracker(out.out, config.name) as tracker:
        for name, figures in settings.items():
            run = tracker.start(f"federated {name}", {"federated": config.federated.model_dump(mode="json")})
            for entry in figures.history:
                run.metrics(entry.model_dump(include=TRACKED, exclude_none=True), entry.round)
            run.end()
