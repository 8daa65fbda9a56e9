"""Averaging rules with one budget each: the same values tried, the same rounds (bytes), the same local epochs (work).

    sluice bench federated_budget CONFIG --out OUT [--data DIR] [--settings cpp2-none-holders fedavg] [--epochs 1 5]
        [--rounds 200] [--rates 0.3 1] [--servers none adam:0.01 adam:0.03] [--seeds 1] [--json]

For each setting and each number of local epochs: the clients' rate among RATES, then the server's optimiser among
SERVERS, both by the best validation AUC of the first seed. E epochs are shown after ROUNDS / E rounds, when clients
have worked as much as those of one epoch after all of them, and after all, when they have sent as much. The test is
read once for each seed of what was chosen, with the model of the round that is best on validation.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.federated.federated_auc import spread, with_data
from benchmarks.federated.federated_choice import Search, Tried
from contracts.artifacts import Artifacts
from contracts.bundle.bundle import load_weights
from contracts.config.config import Config, load
from contracts.config.federated import FederatedOverrides
from federated.jobs.simulate import aucs
from federated.rounds.public_setup import public_setup
from federated.rounds.run_folder import BEST
from models.examples.batches import ExampleSet

SETTINGS, EPOCHS, RATES = ("cpp2-none-holders", "fedavg"), (1, 5), (0.3, 1.0)
SERVERS = ("none", "adam:0.01", "adam:0.03")
EVALUATIONS = 10  # of a run
TEST = "test"


@dataclass(frozen=True)
class Cell:
    """What was chosen for a setting with so many local epochs; AUCs by seed. `equal_work`: on validation, after the
    rounds in which clients have done as many local epochs as those of one epoch do in all."""

    setting: str
    epochs: int
    learning_rate: float
    server: str
    equal_work: list[float]
    validation: list[float]
    test: list[float]


def server_named(text: str) -> Mapping[str, object]:
    """`none`, or an optimiser and its rate, as in adam:0.01."""
    kind, _, rate = text.partition(":")
    named = FederatedOverrides(server_optimizer=kind, server_rate=float(rate) if rate else None)  # type: ignore[arg-type]
    return named.model_dump(exclude_none=True)


@dataclass(frozen=True)
class Budget:
    """Of every setting alike; seeds follow the configured one."""

    rounds: int
    rates: Sequence[float]
    servers: Sequence[str]
    seeds: int


def cell(config: Config, out: Artifacts, setting: str, epochs: int, budget: Budget) -> Cell:
    """Chosen with the configured seed; the others train with what was chosen."""
    searches = [_search(config, out, setting, epochs, budget, seed) for seed in range(budget.seeds)]
    chosen = searches[0].best(setting)
    tried = [search.run(setting, chosen) for search in searches]
    server = next(name for name in budget.servers if server_named(name).items() <= chosen.model_dump().items())
    return Cell(
        setting, epochs, chosen.learning_rate or 0.0, server,
        [run.auc(max(budget.rounds // epochs, 1)) for run in tried], [run.auc() for run in tried],
        [_test_auc(search, setting, run) for search, run in zip(searches, tried, strict=True)])


def _search(config: Config, out: Artifacts, setting: str, epochs: int, budget: Budget, seed: int) -> Search:
    own = config.federated.of(setting).model_copy(update={"local_epochs": epochs, "overrides": {}})
    return Search(
        config.model_copy(update={"seed": config.seed + seed, "federated": own}), out, budget.rounds,
        ("learning_rate", "server"), tuple(budget.rates), tuple(map(server_named, budget.servers)), EVALUATIONS)


def _test_auc(search: Search, setting: str, run: Tried) -> float:
    """Of the model of the best round; 0 where the run diverged."""
    if not run.history:
        return 0.0
    setup, best = public_setup(run.folder.parents[1], setting), load_weights(run.folder / BEST)
    examples = {TEST: ExampleSet(search.out.examples(TEST), setup.space.spec)}
    return aucs(setup.networks, best["rows"], best["dense"], examples)["auc"]


def main(argv: Sequence[str] | None = None) -> None:
    """Prints what is tried as it is, the table at the end, and JSON when asked."""
    parser = argparse.ArgumentParser(
        prog="sluice bench federated_budget", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS))
    parser.add_argument("--epochs", nargs="+", type=int, default=list(EPOCHS))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--rates", nargs="+", type=float, default=list(RATES))
    parser.add_argument("--servers", nargs="+", default=list(SERVERS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    config, out = load(options.config), Artifacts(options.out)
    with_data(config, options.data, out, Console(stderr=True))
    budget = Budget(options.rounds, options.rates, options.servers, options.seeds)
    found = [cell(config, out, setting, epochs, budget) for epochs in options.epochs
             for setting in options.settings]
    print("\n| setting | local epochs | rate | server | validation AUC, equal work | all rounds | test AUC |")
    print("|---|---|---|---|---|---|---|")
    for one in found:
        print(f"| {one.setting} | {one.epochs} | {one.learning_rate:g} | {one.server} | {spread(one.equal_work)} "
              f"| {spread(one.validation)} | {spread(one.test)} |")
    if options.json:
        print(json.dumps([asdict(one) for one in found]))


if __name__ == "__main__":
    main()
