"""Cross statistics and their rivals: none, table, factorisation, two towers, PCF-GNN; or the graph network at scale.

    sluice bench statistics rivals CONFIG --out OUT [--seeds 5] [--rankers dnn dcn_v2] [--rivals none table ...]
    sluice bench statistics worlds CONFIG --out OUT [--worlds 2] [--events 5000000] [--seeds 3] [--rivals table ...]
    sluice bench statistics scale [--nodes 1000000] [--edges 20000000] [--batches 200]

`rivals` needs the output of `sluice features CONFIG` in OUT and counts the graph of CONFIG's pairs where there is none
yet; same windows, seeds and rankers for all. Where OUT has the truth of a simulated marketplace, the error over pairs
never seen together is given too; `worlds` simulates further ones, of other seeds or sizes, for that error alone.
Prints Markdown tables; the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics as spread
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from contracts.artifacts import LABEL, Artifacts
from contracts.config import Config, Statistics, load
from contracts.errors import ConfigError
from contracts.feature_spec import FeatureSpec
from models import pair_network, pair_pretraining
from models.batches import ExampleSet
from models.metrics import auc
from models.pair_buckets import auc_by_bucket, of_rows
from models.pair_graph import PairGraph, Relation
from models.pair_memory import memory
from models.pair_rivals import RIVALS, downstream, made_by
from pipelines import pair_step
from pipelines.marketplace import simulate
from pipelines.marketplace_truth import PAIR
from sluice import steps
from sluice.pair_judge import true_rates, zero_bucket_mse

WORLD = 1000  # between the seeds of two worlds
Figures = dict[str, dict[str, list[float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    rivals = kinds.add_parser("rivals")
    rivals.add_argument("config", type=Path)
    rivals.add_argument("--out", type=Path, required=True)
    rivals.add_argument("--seeds", type=int, default=5)
    rivals.add_argument("--rankers", nargs="*", default=["dnn", "dcn_v2"])
    rivals.add_argument("--rivals", nargs="*", default=list(RIVALS), choices=RIVALS)
    worlds = kinds.add_parser("worlds")
    worlds.add_argument("config", type=Path)
    worlds.add_argument("--out", type=Path, required=True)
    worlds.add_argument("--worlds", type=int, default=2)
    worlds.add_argument("--events", type=int, help="instead of the configuration's")
    worlds.add_argument("--seeds", type=int, default=3, help="of the statistics, in each world")
    worlds.add_argument("--rivals", nargs="*", default=list(RIVALS[1:]), choices=RIVALS[1:])
    scale = kinds.add_parser("scale")
    scale.add_argument("--nodes", type=int, default=1_000_000)
    scale.add_argument("--edges", type=int, default=20_000_000)
    scale.add_argument("--batches", type=int, default=200)
    chosen = parser.parse_args()
    if chosen.kind == "scale":
        found = at_scale(chosen.nodes, chosen.edges, chosen.batches)
        print("\n".join(f"{name:28s} {value:,.4g}" for name, value in found.items()))
    elif chosen.kind == "worlds":
        found = other_worlds(load(chosen.config), chosen)
    else:
        found = compare(load(chosen.config), Artifacts(chosen.out), chosen.seeds, chosen.rankers, chosen.rivals)
    print(json.dumps(found))


def compare(config: Config, out: Artifacts, seeds: int, rankers: list[str], rivals: list[str]) -> dict[str, Any]:
    if not (out.statistics / "manifest.json").exists():
        pair_step.run(config, out)
    graph, spec = PairGraph.read(out.statistics), FeatureSpec.read(out.encoding)
    test = ExampleSet(out.examples("test"), spec)
    labels, seen = test.column(LABEL), [of_rows(graph, pair, test) for pair in graph.pairs]
    figures: Figures = {name: {} for name in (*rivals, "mean")}
    buckets: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    truth = true_rates(out, graph) if out.truth.exists() and PAIR in _pairs(graph) else None
    for seed in range(config.seed, config.seed + seeds):
        made = {name: made_by(name, graph, spec, config.statistics, seed) for name in rivals if name != "none"}
        if truth is not None:
            for name, error in zero_bucket_mse(made, graph, truth).items():
                figures[name].setdefault("zero x 1e4", []).append(error * 1e4)
        for name in rivals:
            if name in made:
                sizes |= memory(made[name], graph) | {name: memory(made[name], graph)["own"]}
            for ranker in rankers:
                with tempfile.TemporaryDirectory() as folder:
                    logits = downstream(ranker, made.get(name), graph, config, out, seed, Path(folder))
                figures[name].setdefault(f"{ranker} AUC", []).append(auc(labels, logits))
                for pair, counts in enumerate(seen):
                    cells = auc_by_bucket(counts, labels, logits)
                    buckets.setdefault(f"{_pairs(graph)[pair]}", {}).setdefault(f"{ranker} {name}", []).append(cells)
            print(seed, name, {key: values[-1] for key, values in figures[name].items()}, flush=True)
    _print_table(figures)
    _print_buckets(buckets)
    return {"figures": figures, "bytes": {k: v for k, v in sizes.items() if k != "own"}, "buckets": buckets}


def other_worlds(config: Config, chosen: argparse.Namespace) -> dict[str, Any]:
    """The error over pairs never seen together in marketplaces whose seeds nothing was chosen on."""
    if config.simulation is None:
        raise ConfigError(f"{chosen.config} has no [simulation] section; worlds need one")
    settings = config.simulation.model_copy(update={"events": chosen.events or config.simulation.events})
    found = {}
    for seed in range(config.seed + WORLD, config.seed + WORLD * (chosen.worlds + 1), WORLD):
        world, out = config.model_copy(update={"seed": seed}), Artifacts(chosen.out / f"world-{seed}")
        simulate(settings, seed, out.raw, out.truth)
        steps.features(world, out.raw, out, Console(stderr=True))
        print(f"\nworld {seed}, {settings.events} events", flush=True)
        found[str(seed)] = compare(world, out, chosen.seeds, [], chosen.rivals)
    return found


def _pairs(graph: PairGraph) -> list[tuple[str, ...]]:
    return [tuple(graph.relations[number][:2]) for number in graph.pairs]


def _print_table(figures: Figures) -> None:
    columns = list(dict.fromkeys(name for values in figures.values() for name in values))
    print("| statistics | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")
    for name, values in figures.items():
        print(f"| {name} | " + " | ".join(_mean(values.get(column, [])) for column in columns) + " |")


def _print_buckets(buckets: dict[str, Any]) -> None:
    for pair, models in buckets.items():
        names = list(next(iter(models.values()))[0])
        print(f"\n| {pair} | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
        print("| rows | " + " | ".join(str(next(iter(models.values()))[0][name]["rows"]) for name in names) + " |")
        for model, runs in models.items():
            cells = ([run[name]["auc"] for run in runs if run[name]["auc"] is not None] for name in names)
            print(f"| {model} | " + " | ".join(map(_mean, cells)) + " |")


def _mean(values: list[float]) -> str:
    if not values:
        return ""
    return f"{spread.mean(values):.4f} ± {spread.stdev(values) if len(values) > 1 else 0.0:.4f}"


def synthetic(nodes: int, edges: int, seed: int = 0) -> PairGraph:
    """Two large slots and an attribute of each; values as skewed as 1 / rank; few pairs repeat."""
    random = np.random.default_rng(seed)
    half, groups = nodes // 2 - 1000, 1000
    slots = {"user": half, "item": half, "user_group": groups, "item_group": groups}
    relations = [Relation("user", "item", "pair"), Relation("user", "user_group", "link"),
                 Relation("item", "item_group", "link")]
    pairs = edges - 2 * half
    ends = [np.minimum((half ** random.random(pairs)).astype(np.int64), half - 1) for _ in range(2)]
    both = np.concatenate([ends[0], np.arange(half), np.arange(half)])
    right = np.concatenate([ends[1], np.arange(half) % groups, np.arange(half) % groups])
    relation = np.repeat([0, 1, 2], [pairs, half, half])
    shown = random.geometric(0.5, len(both))
    return PairGraph.of(slots, relations, relation, both, right, shown, random.binomial(shown, 0.05), shown)


def at_scale(nodes: int, edges: int, batches: int) -> dict[str, Any]:
    """Edges per second of pre-training over some batches, and the peak of memory."""
    settings = Statistics(batch_size=4096)
    begin = time.perf_counter()
    graph = synthetic(nodes, edges)
    built = time.perf_counter() - begin
    torch.manual_seed(0)
    network = pair_network.build(settings, graph)
    begin = time.perf_counter()
    run = pair_pretraining.Run(network, graph, settings, 0)
    indexed = run.graph.incoming and time.perf_counter() - begin
    begin = time.perf_counter()
    run.epoch(1, None, most_batches=batches)
    spent = time.perf_counter() - begin
    return {
        "nodes": graph.nodes, "edges": len(graph.edges.relation), "threads": torch.get_num_threads(),
        "seconds to draw the graph": built, "seconds to index it": indexed, "batches of 4096": batches,
        "seconds": spent, "edges per second": batches * settings.batch_size / spent,
        "hours per epoch": len(run.train) / (batches * settings.batch_size / spent) / 3600,
        "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


if __name__ == "__main__":
    main()
