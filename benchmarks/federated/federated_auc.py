"""Test AUC of every federated setting on the same clients, beside central training: the second table of `federated`.

Values of training come from the configuration and were chosen on validation (benchmarks/federated/federated_choice.py);
so is the round whose model is evaluated. The configuration may be of a simulated marketplace, whose log is then
simulated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.progress import OnProgress
from contracts.summaries.federated import FederatedFigures, RoundFigures, SettingFigures
from federated.clients import client_files, prepare
from federated.clients.row_space import RowSpace
from federated.jobs.simulate import simulate_settings
from federated.rounds.setting_figures import side_by_side
from sluice.run import jobs
from sluice.run.progress import show_progress

KEYS = {"auc", "bytes_per_client_round", "epsilon", "epsilon_composed", "kept", "seconds_per_round", "dropouts"}
UNIONS, ROUNDS_SHOWN = 20, 8


def with_data(config: Config, data: Path | None, out: Artifacts, console: Console) -> None:
    """Features of the log, which is simulated first where the configuration says so and no data are given."""
    if out.encoding.exists():
        return
    if config.simulation is not None and data is None:
        from pipelines.marketplace.marketplace import simulate

        simulate(config.simulation, config.seed, out.raw, out.truth)
        data = out.raw
    jobs.run_features(config, data, out, console)


def auc_table(config: Config, data: Path | None, out: Artifacts, wire: bool, seeds: int) -> dict[str, Any]:
    """Prints the table as the runs end; returns the figures, those of the first seed with the keys of `sluice
    federate`. A seed draws clients, weights and answers anew; the log stays. Runs go on where they were stopped."""
    console = Console(stderr=True)
    with_data(config, data, out, console)
    found = {}
    for seed in range(config.seed, config.seed + seeds):
        with show_progress(console, f"federate, seed {seed}") as progress:
            found[seed] = one_seed(config.model_copy(update={"seed": seed}), out, progress.advance, wire)
    first = found[config.seed]
    figures: dict[str, Any] = first.federated.model_dump(include=KEYS)
    figures |= {"single_holders": first.single_holders, "auc_of_seeds": {
        name: [seed.federated.auc[name] for seed in found.values()] for name in config.federated.settings}}
    print(f"\n{config.name}: {first.clients} clients, {config.federated.clients} a round; of a round's union "
          f"{first.single_holders:.0%} is held by one client\n")
    print("| setting | validation AUC | test AUC | best round | of rounds | share kept | KiB a client and round | "
          "epsilon a row |\n|---|---|---|---|---|---|---|---|")
    for name in config.federated.settings:
        print(_row(name, [seed.settings[name] for seed in found.values()]), flush=True)
    print()
    print(_against_rounds({name: [seed.settings[name].history for seed in found.values()]
                           for name in config.federated.settings}))
    return figures


class OneSeed(NamedTuple):
    federated: FederatedFigures
    clients: int
    settings: dict[str, SettingFigures]
    single_holders: float


def one_seed(config: Config, out: Artifacts, on_progress: OnProgress, wire: bool) -> OneSeed:
    folder = out.out / "federated_auc" / str(config.seed)
    clients = prepare.prepare(config, out, folder)
    settings = simulate_settings(config, out, folder, on_progress, wire)
    return OneSeed(side_by_side(config, settings), clients, settings, single_holders(config, folder))


def _row(name: str, seeds: list[SettingFigures]) -> str:
    first = seeds[0]
    size, epsilon = first.bytes_per_client_round, first.epsilon
    aucs = [spread([auc for auc in of_seeds if auc is not None]) for of_seeds in
            ([figures.auc_validation for figures in seeds], [figures.auc for figures in seeds])]
    return (f"| {name} | {aucs[0]} | {aucs[1]} "
            f"| {', '.join(str(figures.best_round) for figures in seeds)} | {first.rounds} | {first.kept:.3f} "
            f"| {f'{size / 1024:.0f}' if size else ''} | {'' if epsilon is None else f'{epsilon:.2f}'} |")


def _against_rounds(histories: dict[str, list[tuple[RoundFigures, ...]]]) -> str:
    """Mean test AUC over seeds at some of the rounds that were evaluated."""
    lines = ["| setting | test AUC after rounds |", "|---|---|"]
    for name, runs in histories.items():
        judged = [entry.round for entry in runs[0] if entry.auc is not None]
        shown = judged[:: max(len(judged) // ROUNDS_SHOWN, 1)] + judged[-1:]
        means = {number: np.mean([run[number - 1].auc for run in runs]) for number in dict.fromkeys(shown)}
        lines.append(f"| {name} | " + ", ".join(f"{number}: {mean:.4f}" for number, mean in means.items()) + " |")
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    """Mean, and the standard deviation over seeds where there are several."""
    said = f"{np.mean(values):.4f}"
    return said if len(values) == 1 else f"{said} ± {np.std(values, ddof=1):.4f}"


def single_holders(config: Config, folder: Path) -> float:
    """Mean over rounds drawn at random: the share of a round's union that one client alone holds."""
    _, spec = client_files.read_public(folder)
    space = RowSpace(spec, config.federated.public_up_to)
    held = [space.held(client_files.read_client(folder, number)) for number in range(client_files.count(folder))]
    generator, shares = np.random.default_rng(config.seed), []
    for _ in range(UNIONS):
        chosen = generator.choice(len(held), config.federated.clients, replace=False)
        holders = np.unique(np.concatenate([held[client] for client in chosen]), return_counts=True)[1]
        shares.append(float((holders == 1).mean()))
    return float(np.mean(shares))
