"""FSCD beside its baselines on one frontier, over seeds: recall, hit rate, AUC, microseconds, milliseconds.

    sluice bench prerank CONFIG=OUT [CONFIG=OUT ...] [--seeds 5] [--item-side on_request] [--costs] [--laws]

OUT is a run with trained models; with --costs its costs.json counts. Baselines order the fields, and every order is cut
at the prices of FSCD's own points; all sets of fields are fine-tuned alike, from a network with as many steps behind
it. --laws adds what batch size and cost weight do to the kept fields. Prints Markdown; the last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.features.feature_spec import FeatureSpec
from contracts.features.field_costs import FILE, MeasuredCosts, costs
from models.preranking import baselines as prerank_baselines
from models.preranking import job as prerank_step
from models.preranking import sweep as prerank_sweep
from models.preranking.job import Outcome
from models.preranking.sweep import Point, Task
from sluice.demo.evaluate_prerank import DECOYS
from sluice.run.prerank_candidates import write_candidates
from sluice.run.prerank_timing import with_times

BATCHES, WEIGHTS = (256, 4096), (0.25, 1.0, 4.0, 16.0)
KEYS = ("recall", "hit_rate", "auc", "us_per_1000", "funnel_ms")


def silent(what: str, done: int, total: int) -> None:
    pass


def bench(config: Config, out: Artifacts, asked: argparse.Namespace) -> dict[str, Any]:
    spec = FeatureSpec.read(out.encoding)
    measured = MeasuredCosts.read(out.out / FILE) if asked.costs else None
    loaded, requests = write_candidates(config, out, spec, config.seed, silent)
    runs: list[dict[str, Any]] = []
    for seed in range(config.seed, config.seed + asked.seeds):
        task = prerank_step.make_task(config, out, spec, measured, seed, silent)
        outcome, _ = prerank_step.outcome_of(task, config, out, loaded.settings.ranker)
        figures = with_times(outcome.figures, outcome, loaded, requests).plain()
        figures["decoys_kept"] = sorted(DECOYS & set(outcome.figures.kept))
        runs.append({**figures, "baselines": baselines(task, outcome), **(laws(task, config) if asked.laws else {})})
        print(f"{config.name}, seed {seed}: {figures['fields_kept']} of {figures['fields_all']} fields, decoys "
              f"{figures['decoys_kept']}: {', '.join(outcome.figures.kept)}", flush=True)
    report(runs)
    return {"runs": runs}


def baselines(task: Task, outcome: Outcome) -> dict[str, dict[str, Any]]:
    """Per baseline its curve, and its recall less FSCD's at the chosen price with a 95% interval over requests."""
    network, gates, trainer = prerank_sweep.gated(task)
    trainer.run(task.settings.sweep_steps * len(task.settings.penalties))
    everything = prerank_sweep.tuned(task, network, network.fields, None, gates)
    own = prerank_sweep.choose(outcome.points, task.settings)
    found = {}
    for name, order in prerank_baselines.orders(task, everything.network).items():
        points = [point_of(task, network, order, price) for price in sorted({p.price for p in outcome.points})]
        curve = [point for point in points if point is not None]
        affordable = [p for p in curve if p.price <= own.price + 1e-9]
        best = max(affordable, key=lambda p: p.quality.recall, default=None)
        gap = np.full(1, np.nan) if best is None else best.quality.recalls - own.quality.recalls
        found[name] = {"gap": float(gap.mean()), "gap_error": float(gap.std() / np.sqrt(len(gap))),
                       "curve": [{"price": p.price, "kept": p.kept, "recall": p.quality.recall,
                                  "hit_rate": p.quality.hit_rate} for p in curve]}
    return found


def point_of(task: Task, network: Any, order: Sequence[str], price: float) -> Point | None:
    """The order's first fields within the price, fine-tuned."""
    kept = prerank_sweep.cut(order, task.price, price)
    return prerank_sweep.tuned(task, network, kept, None, None) if kept else None


def laws(task: Task, config: Config) -> dict[str, Any]:
    """Fields with delta > 0.5: at two batch sizes after equal steps, and at cost weights four times apart."""
    middle = task.reg_scale(task.settings.penalties[len(task.settings.penalties) // 2])
    by_batch = [kept(replace(task, settings=task.settings.model_copy(update={"batch_size": size})), middle)
                for size in BATCHES]
    by_weight = {}
    for weight in WEIGHTS:
        settings = task.settings.model_copy(update={"computation_weight": weight})
        dearer = replace(task, costs=costs(task.spec, settings, task.measured, config.retrieve.candidates))
        by_weight[weight] = sum(task.costs[name] for name in kept(dearer, middle))
    return {"batch_differs": sorted(by_batch[0] ^ by_batch[1]), "batch_agree": [sorted(each) for each in by_batch],
            "cost_by_weight": by_weight}


def kept(task: Task, reg_scale: float) -> set[str]:
    network, gates, trainer = prerank_sweep.gated(task)
    trainer.run(task.settings.sweep_steps * len(task.settings.penalties), reg_scale)
    return {name for name, stays in zip(network.fields, gates.kept().tolist(), strict=True) if stays}


def spread(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    deviation = statistics.stdev(known) if len(known) > 1 else 0.0
    return f"{statistics.mean(known):.4f} ± {deviation:.4f}" if known else "-"


def report(runs: Sequence[dict[str, Any]]) -> None:
    print(f"\n| pre-ranker, test window | {' | '.join(KEYS)} |\n|---|{'---|' * len(KEYS)}")
    for name in ("fscd", "dot_product", "full_ranker"):
        print(f"| {name} | {' | '.join(spread(run[name].get(key) for run in runs) for key in KEYS)} |")
    print("\n| penalty | fields | price | us per 1,000 | recall, validation | AUC |\n|---|---|---|---|---|---|")
    for point in runs[0]["frontier"]:
        cells = [f"{point[key]:.4g}" for key in ("fields_kept", "price", "us_per_1000", "recall", "auc")]
        penalty = f"{point.get('reg_scale', 0):.2g}{', chosen' if point['chosen'] else ''}"
        print(f"| {penalty} | {' | '.join(cells)} |")
    print("\n| order of fields | recall less FSCD's at its chosen price | per seed, ± standard error |\n|---|---|---|")
    for name in runs[0]["baselines"]:
        gaps = [run["baselines"][name] for run in runs]
        each = ", ".join(f"{gap['gap']:+.4f} ± {gap['gap_error']:.4f}" for gap in gaps)
        print(f"| {name} | {spread(gap['gap'] for gap in gaps)} | {each} |")
    if "cost_by_weight" in runs[0]:
        means = {weight: statistics.mean(run["cost_by_weight"][weight] for run in runs) for weight in WEIGHTS}
        print(f"\nkept cost by cost weight: {means}")
        print(f"fields that differ between batches of {BATCHES}: {[run['batch_differs'] for run in runs]}")
    print(flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="CONFIG=OUT")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--item-side", choices=("precomputed", "on_request"), default="precomputed")
    parser.add_argument("--costs", action="store_true", help=f"count OUT/{FILE} of `sluice measure-costs`")
    parser.add_argument("--laws", action="store_true", help="also what batch size and cost weight do")
    asked = parser.parse_args(argv)
    torch.set_num_threads(1)
    found = {}
    for pair in asked.runs:
        path, _, out = pair.partition("=")
        config = load(Path(path))
        item_side = config.prerank.model_copy(update={"item_side": asked.item_side})
        found[config.name] = bench(config.model_copy(update={"prerank": item_side}), Artifacts(Path(out)), asked)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
