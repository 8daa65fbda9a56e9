"""FedLaAvg, FedAvg and FedProx on a marketplace whose users come at hours of their own: test AUC of the last rounds.

    sluice bench day_cycle --out OUT [--rounds 400] [--seeds 2] [--methods fedlaavg fedavg ...] [--config FILE] [--json]

benchmarks/federated/day_cycle.toml: 200 users are clients, 20 a round. Three cases: all are there; each is there at
random, whatever its data; a day of 20 rounds in which users of one occupation, who share a taste, come together for a
quarter of it. Mean and minimum of the test AUC over the last fifth of the rounds, mean over seeds. The learning rate of
each method is the best of RATES by the mean validation AUC of the same rounds, with all clients there. No wire: masks
change no sum.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.federated.federated_auc import with_data
from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.config.federated import FederatedOverrides
from contracts.errors import FederatedError
from federated.clients import prepare
from federated.jobs.simulate import run_setting

CONFIG = Path(__file__).with_suffix(".toml")
METHODS = {"fedlaavg": "cpp5-none-latest", "fedlaavg_full": "all-none-latest", "fedavg": "fedavg", "fedprox": "fedprox"}
CASES = ("always", "random", "day_cycle")
RATES = (0.1, 0.3, 1.0)
LAST = 5  # the last fifth of the rounds is evaluated


def last_rounds(
    config: Config, out: Artifacts, setting: str, case: str, rate: float, rounds: int, window: str
) -> list[float]:
    """AUC on a window after each of the last fifth of the rounds; [0] where training diverges."""
    federated = config.federated.model_copy(update={
        "settings": (setting,), "served": setting, "overrides": {setting: FederatedOverrides(learning_rate=rate)},
        "availability": case, "rounds": rounds, "evaluate_every": 1 if window == "test" else 4,
    })
    changed = config.model_copy(update={"federated": federated})
    folder = out.out / "day_cycle" / f"{setting}-{case}-{rate}-{window}-{config.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    prepare.prepare(changed, out, folder)
    try:
        run = run_setting(setting, changed, out, folder, lambda *_: None, (window,), wire=False)
    except FederatedError:
        return [0.0]
    last = [entry for entry in run.history if entry.round > rounds - rounds // LAST]
    aucs = [entry.auc if window == "test" else entry.auc_validation for entry in last]
    return [auc for auc in aucs if auc is not None]


def best_rate(config: Config, out: Artifacts, setting: str, rounds: int, rates: Sequence[float]) -> float:
    reached = {rate: statistics.fmean(last_rounds(config, out, setting, "always", rate, rounds, "validation"))
               for rate in rates}
    return max(reached, key=lambda rate: reached[rate])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--rates", nargs="+", type=float, default=list(RATES))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    config, out = load(arguments.config), Artifacts(arguments.out)
    with_data(config, None, out, Console(stderr=True))
    figures: dict[str, dict[str, dict[str, float]]] = {}
    print("| method | learning rate | " + " | ".join(CASES) + " |\n|---|---|" + "---|" * len(CASES))
    for name in arguments.methods:
        setting, row = METHODS[name], figures.setdefault(name, {})
        rate = best_rate(config, out, setting, arguments.rounds, arguments.rates)
        for case in CASES:
            runs = [last_rounds(config.model_copy(update={"seed": config.seed + seed}), out, setting, case, rate,
                                arguments.rounds, "test") for seed in range(arguments.seeds)]
            row[case] = {"mean": statistics.fmean(statistics.fmean(run) for run in runs),
                         "minimum": statistics.fmean(min(run) for run in runs)}
        cells = " | ".join(f"{row[case]['mean']:.4f} / {row[case]['minimum']:.4f}" for case in CASES)
        print(f"| {name} | {rate:g} | {cells} |", flush=True)
    if arguments.json:
        print(json.dumps({"day_cycle": figures}))


if __name__ == "__main__":
    main()
