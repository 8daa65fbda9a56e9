"""Test AUC of every federated setting on the same clients, beside central training: the second table of `federated`.

Values of training come from the configuration and were chosen on validation (benchmarks/federated_choice.py); so is the
round whose model is judged. The configuration may be of a simulated marketplace, whose log is then simulated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config import Config
from federated import client_files, federate_step
from federated.row_space import RowSpace
from sluice import steps
from sluice.progress import step

KEYS = ("auc", "bytes_per_client_round", "epsilon", "epsilon_composed", "kept", "seconds_per_round", "dropouts")
UNIONS = 20


def with_data(config: Config, data: Path | None, out: Artifacts, console: Console) -> None:
    """Features of the log, which is simulated first where the configuration says so and no data are given."""
    if out.encoding.exists():
        return
    if config.simulation is not None and data is None:
        from pipelines.marketplace import simulate

        simulate(config.simulation, config.seed, out.raw, out.truth)
        data = out.raw
    steps.features(config, data, out, console)


def auc_table(config: Config, data: Path | None, out: Artifacts, wire: bool) -> dict[str, Any]:
    """Prints the table as the runs end; answers the figures with the keys of `sluice federate`."""
    console = Console(stderr=True)
    with_data(config, data, out, console)
    with step(console, "federate") as progress:
        found = federate_step.run(config, out, progress.advance, bundle=False, wire=wire)
    folder = out.out / federate_step.FOLDER
    figures = {key: found["federated"][key] for key in KEYS} | {"single_holders": single_holders(config, folder)}
    print(f"\n{config.name}: {found['clients']} clients, {config.federated.clients} a round; of a round's union "
          f"{figures['single_holders']:.0%} is held by one client\n")
    print("| setting | validation AUC | test AUC | best round | of rounds | share kept | KiB a client and round | "
          "epsilon a row |")
    print("|---|---|---|---|---|---|---|---|")
    for name, one in found["settings"].items():
        size = figures["bytes_per_client_round"].get(name)
        epsilon = figures["epsilon"].get(name)
        print(f"| {name} | {one['auc_validation']:.4f} | {one['auc']:.4f} | {one['best_round']} | {one['rounds']} "
              f"| {one['kept']:.3f} | {'' if size is None else f'{size / 1024:.0f}'} "
              f"| {'' if epsilon is None else f'{epsilon:.2f}'} |")
    return figures


def single_holders(config: Config, folder: Path) -> float:
    """Mean over rounds drawn at random: the share of a round's union that one client alone holds."""
    _, spec = client_files.read_public(folder)
    space = RowSpace(spec, config.federated.public_up_to)
    private = np.concatenate([np.empty(0, np.int64), *(np.arange(*ends) for ends in space.private_ranges())])
    held = [np.intersect1d(space.places(client_files.read_client(folder, number)), private)
            for number in range(client_files.count(folder))]
    generator, shares = np.random.default_rng(config.seed), []
    for _ in range(UNIONS):
        chosen = generator.choice(len(held), config.federated.clients, replace=False)
        holders = np.unique(np.concatenate([held[client] for client in chosen]), return_counts=True)[1]
        shares.append(float((holders == 1).mean()))
    return float(np.mean(shares))
