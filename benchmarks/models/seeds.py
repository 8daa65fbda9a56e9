"""Every model of a configuration over several seeds: test AUC and GAUC, mean and standard deviation.

    sluice bench seeds CONFIG --data DIR --out OUT --seeds 3

Features are made once, where OUT has none. Prints a Markdown table; the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import load
from sluice.run import jobs

OUTSIDE = "LightGBM (outside reference)"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args(argv)
    config, out, console = load(arguments.config), Artifacts(arguments.out), Console(stderr=True)
    if not out.encoding.exists():
        jobs.run_features(config, arguments.data, out, console)
    runs = []
    for seed in range(arguments.seeds):
        trained = jobs.run_train(config, out, console, config.seed + seed)
        runs.append(trained.models | ({OUTSIDE: trained.outside} if trained.outside else {}))
    figures = {
        model: {metric: [getattr(run[model], metric) for run in runs] for metric in ("auc", "gauc")}
        for model in runs[0]
    }
    print("| model | test AUC | test GAUC |\n|---|---|---|")
    for model, values in figures.items():
        print(f"| {model} | {spread(values['auc'])} | {spread(values['gauc'])} |")
    print(json.dumps(figures))


def spread(values: list[float | None]) -> str:
    """A log without users has no GAUC."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    deviation = statistics.stdev(known) if len(known) > 1 else 0.0
    return f"{statistics.mean(known):.4f} ± {deviation:.4f}"


if __name__ == "__main__":
    main()
