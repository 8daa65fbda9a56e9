"""FSCD beside its rivals on one frontier, over seeds: recall, hit rate, AUC, microseconds, milliseconds.

    sluice bench prerank CONFIG --out OUT [--seeds 5] [--costs FILE]

OUT is a run with trained models. Rivals order the fields, and every order is cut where FSCD's own points are; all sets
of fields are fine-tuned alike from the same network. Times are taken side by side at the end. Prints Markdown tables;
the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch

from contracts.artifacts import Artifacts
from contracts.config import load
from contracts.feature_spec import FeatureSpec
from contracts.field_costs import MeasuredCosts
from models import prerank_rivals, prerank_step, prerank_sweep
from models.prerank_sweep import Task
from sluice import prerank


def silent(what: str, done: int, total: int) -> None:
    pass


def rivals(task: Task, budgets: list[float]) -> dict[str, list[dict[str, Any]]]:
    """Per rival, recall and hit rate of the best fields of its order within each budget."""
    network, gates, _ = prerank_sweep.gated(task)
    everything = prerank_sweep.tuned(task, network, network.fields, None, gates)
    found: dict[str, list[dict[str, Any]]] = {}
    for name, order in prerank_rivals.orders(task, everything.network).items():
        points = []
        for budget in budgets:
            kept = prerank_rivals.cut(order, dict(task.costs), budget)
            if kept:
                point = prerank_sweep.tuned(task, network, kept, None, gates)
                points.append({"cost": point.cost, "kept": point.kept, "recall": point.quality.recall,
                               "recall_error": point.quality.recall_error, "hit_rate": point.quality.hit_rate})
        found[name] = points
    return found


def spread(values: list[float]) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ± {deviation:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--costs", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    config, out = load(asked.config), Artifacts(asked.out)
    spec, measured = FeatureSpec.read(out.encoding), MeasuredCosts.read(asked.costs) if asked.costs else None
    runs: list[dict[str, Any]] = []
    loaded, requests = prerank.candidates(config, out, spec, config.seed, silent)
    for seed in range(config.seed, config.seed + asked.seeds):
        task = prerank_step.make_task(config, out, spec, measured, seed, silent)
        outcome = prerank_step.run(task, config, out, loaded.settings.ranker)
        figures = prerank.with_times(outcome.figures, outcome, loaded, requests)
        budgets = sorted({point["cost"] for point in figures["frontier"]})
        runs.append({**figures, "rivals": rivals(task, budgets)})
        print(f"seed {seed}: kept {figures['fields_kept']} of {figures['fields_all']}", flush=True)
    report(runs)


def report(runs: list[dict[str, Any]]) -> None:
    keys = ("recall", "hit_rate", "auc", "us_per_1000", "cascade_ms")
    print(f"| pre-ranker | {' | '.join(keys)} |\n|---|{'---|' * len(keys)}")
    for name in ("fscd", "dot_product", "full_ranker"):
        cells = [spread([run[name][key] for run in runs if run[name][key] is not None]) for key in keys]
        print(f"| {name} | {' | '.join(cells)} |")
    print("\n| order of fields | recall at FSCD's chosen cost | FSCD minus it, per seed |\n|---|---|---|")
    for name in runs[0]["rivals"]:
        gaps = []
        for run in runs:
            chosen = next(point for point in run["frontier"] if point["chosen"])
            near = [p for p in run["rivals"][name] if p["cost"] <= chosen["cost"] + 1e-9]
            gaps.append((max(p["recall"] for p in near) if near else 0.0, chosen["recall"]))
        differences = ", ".join(f"{own - other:+.4f}" for other, own in gaps)
        print(f"| {name} | {spread([other for other, _ in gaps])} | {differences} |")
    print(json.dumps(runs))


if __name__ == "__main__":
    main()
