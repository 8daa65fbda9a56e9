"""FedLaAvg, FedAvg and FedProx on a marketplace whose users come at hours of their own: test AUC of the last rounds.

    sluice bench day_cycle examples/marketplace_longtail.toml --out OUT [--rounds 120] [--json]

100 users are clients, 10 a round. Three cases: all are there; each is there at random, whatever its data; a day of 20
rounds in which users of one age band come together for a quarter of it. Mean and minimum of the test AUC over the last
fifth of the rounds. The learning rate of each method is the better of RATES by the mean validation AUC of the same
rounds, with all clients there. No wire: masks change no sum.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
from pathlib import Path

from rich.console import Console

from benchmarks.federated_auc import with_data
from contracts.artifacts import Artifacts
from contracts.config import Config, load
from contracts.errors import FederatedError
from contracts.sections.federated import FederatedOwn
from federated import prepare, simulate

METHODS = {"fedlaavg": "cpp5-none-latest", "fedlaavg_full": "all-none-latest", "fedavg": "fedavg", "fedprox": "fedprox"}
CASES = ("always", "random", "day_cycle")
RATES = (0.3, 1.0)
POPULATION, A_ROUND, DAY, SHARE, BY = 100, 10, 20, 0.25, "age_band"


def last_rounds(
    config: Config, out: Artifacts, setting: str, case: str, rate: float, rounds: int, window: str
) -> list[float]:
    """AUC on a window after each of the last fifth of the rounds; [0] where training diverges."""
    federated = config.federated.model_copy(update={
        "settings": (setting,), "served": setting, "own": {setting: FederatedOwn(learning_rate=rate)},
        "population": POPULATION, "clients": A_ROUND, "availability": case, "availability_period": DAY,
        "availability_share": SHARE, "availability_by": BY, "retrieval": False, "decay": 1.0,
        "evaluate_every": max(rounds // 30, 1),
    })
    changed = config.model_copy(update={"federated": federated.model_copy(update={"rounds": rounds})})
    folder = out.out / "day_cycle" / f"{setting}-{case}-{rate}-{window}"
    shutil.rmtree(folder, ignore_errors=True)
    prepare.prepare(changed, out, folder)
    try:
        run = simulate.run_setting(setting, changed, out, folder, lambda *_: None, (window,), wire=False)
    except FederatedError:
        return [0.0]
    key = "auc" if window == "test" else f"auc_{window}"
    return [entry[key] for entry in run.history if key in entry and entry["round"] > rounds - rounds // 5]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    config, out = load(arguments.config), Artifacts(arguments.out)
    with_data(config, arguments.data, out, Console(stderr=True))
    figures: dict[str, dict[str, dict[str, float]]] = {}
    print("| method | learning rate | " + " | ".join(CASES) + " |\n|---|---|" + "---|" * len(CASES))
    for name, setting in METHODS.items():
        judged = {
            rate: statistics.fmean(
                last_rounds(config, out, setting, "always", rate, arguments.rounds, "validation"))
            for rate in RATES
        }
        rate = max(judged, key=lambda value: judged[value])
        row = figures[name] = {}
        for case in CASES:
            found = last_rounds(config, out, setting, case, rate, arguments.rounds, "test")
            row[case] = {"mean": statistics.fmean(found), "minimum": min(found)}
        cells = " | ".join(f"{row[case]['mean']:.4f} / {row[case]['minimum']:.4f}" for case in CASES)
        print(f"| {name} | {rate:g} | {cells} |", flush=True)
    if arguments.json:
        print(json.dumps({"day_cycle": figures}))


if __name__ == "__main__":
    main()
