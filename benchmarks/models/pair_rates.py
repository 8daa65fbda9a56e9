"""Pair rates and their baselines: none, table, factorisation, two towers, PCF-GNN, and this as the prior of the count.

    sluice bench pair_rates baselines CONFIG --out OUT [--data DIR] [--events 5000000] [--seeds 5]
                                      [--rankers dnn dcn_v2] [--baselines none table ...]
    sluice bench pair_rates worlds CONFIG --out OUT [--worlds 2] [--events 5000000] [--seeds 3] [--baselines table ...]

`baselines` takes the output of `sluice features CONFIG` in OUT, or makes it there: from the log in DIR, or from a
simulation where CONFIG has one. It counts the graph of CONFIG's pairs where there is none yet; same windows, seeds and
rankers for all. Of a simulated marketplace the error over pairs never seen together is given too; `worlds` simulates
further ones, of other seeds or sizes, for that error alone. *alone* is the predicted rate without a ranker. What a
ranker gains over one without rates, and over one with the table, has an interval over draws of seeds and of test rows.
A run that was killed goes on (OUT/pair_rates/baselines.jsonl). Prints Markdown tables; the last line is one JSON
object.
"""

from __future__ import annotations

import argparse
import json
import statistics as spread
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.models.crosses import paired
from contracts.artifacts import LABEL, Artifacts
from contracts.bundle.bundle import load_array, save_array
from contracts.config.config import Config, load
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from contracts.features.pair_graph import MANIFEST, GraphManifest
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet
from models.layers.pair_rate_features import PairRateFeatures
from models.pair_rates.baselines import BASELINES, downstream, made_by
from models.pair_rates.buckets import NUMBER, TABLE_ENTRY, alone, auc_by_bucket, memory, of_rows
from models.pair_rates.graph import PairGraph
from pipelines.jobs import pair_job
from pipelines.marketplace.marketplace import simulate
from pipelines.marketplace.truth import PAIR
from sluice.demo.evaluate_pair_rates import Grid, never_seen, true_rates, zero_bucket_mse
from sluice.dev.kept_figures import KeptFigures
from sluice.run import jobs

WORLD = 1000  # between the seeds of two worlds
OVER = ("none", "table")  # what gains are measured against
Figures = dict[str, dict[str, list[float]]]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    baselines = kinds.add_parser("baselines")
    baselines.add_argument("config", type=Path)
    baselines.add_argument("--out", type=Path, required=True)
    baselines.add_argument("--data", type=Path, help="the folder that {data} stands for in the configuration")
    baselines.add_argument("--events", type=int, help="of the simulation, instead of the configuration's")
    baselines.add_argument("--seeds", type=int, default=5)
    baselines.add_argument("--rankers", nargs="*", default=["dnn", "dcn_v2"])
    baselines.add_argument("--baselines", nargs="*", default=list(BASELINES), choices=BASELINES)
    worlds = kinds.add_parser("worlds")
    worlds.add_argument("config", type=Path)
    worlds.add_argument("--out", type=Path, required=True)
    worlds.add_argument("--worlds", type=int, default=2)
    worlds.add_argument("--events", type=int, help="instead of the configuration's")
    worlds.add_argument("--seeds", type=int, default=3, help="of the pre-training, in each world")
    worlds.add_argument("--baselines", nargs="*", default=list(BASELINES[1:]), choices=BASELINES[1:])
    chosen = parser.parse_args(argv)
    if chosen.kind == "worlds":
        found = other_worlds(load(chosen.config), chosen)
    else:
        config, out = load(chosen.config), Artifacts(chosen.out)
        prepare(config, out, chosen.data, chosen.events)
        found = compare(config, out, chosen.seeds, chosen.rankers, chosen.baselines)
    print(json.dumps(found))


def prepare(config: Config, out: Artifacts, data: Path | None, events: int | None) -> None:
    """Simulation, features and graph, each where OUT has none."""
    if events is not None and out.encoding.exists():
        raise ConfigError(f"{out.out} holds a run already; --events wants another --out")
    if not out.encoding.exists():
        if data is None and config.simulation is not None:
            asked = {"events": events or config.simulation.events}
            simulate(config.simulation.model_copy(update=asked), config.seed, out.raw, out.truth)
        jobs.run_features(config, data or out.raw, out, Console(stderr=True))
    if not (out.pair_rates / MANIFEST).exists():
        pair_job.write_pair_graph(config, out)


def compare(config: Config, out: Artifacts, seeds: int, rankers: list[str], baselines: list[str]) -> dict[str, Any]:
    data = Data.read(config, out)
    kept = KeptFigures(out.pair_rates / "baselines.jsonl", config.model_dump(mode="json"), data.manifest.plain())
    figures: Figures = {name: {} for name in (*baselines, "mean")}
    buckets: dict[str, Any] = {}
    about = _about(data.graph, data.truth)
    for seed in range(config.seed, config.seed + seeds):
        if data.truth is not None:
            figures["mean"].setdefault("zero x 1e4", []).append(kept("mean", partial(data.error, "mean", None)))
        for name in baselines:
            for part, found in one_baseline(name, data, config, out, seed, rankers, kept).items():
                for column, value in found["figures"].items():
                    figures[name].setdefault(column, []).append(value)
                for pair, cells in zip(_pairs(data.graph), found["buckets"], strict=False):
                    buckets.setdefault(" x ".join(pair), {}).setdefault(f"{part} {name}", []).append(cells)
            print(seed, name, {key: values[-1] for key, values in figures[name].items()}, flush=True)
    print("\n" + "\n".join(f"{name:30s} {value:,.4g}" for name, value in about.items()) + "\n")
    gains = gains_of(data, out, range(config.seed, config.seed + seeds), rankers, baselines)
    _print_table(figures)
    _print_gains(gains)
    _print_buckets(buckets)
    return {"about": about, "figures": figures, "gains": gains, "buckets": buckets}


def gains_of(
    data: Data, out: Artifacts, seeds: Sequence[int], rankers: Sequence[str], baselines: Sequence[str]
) -> dict[str, dict[str, float]]:
    """"RANKER, BASELINE" -> the mean gain of test AUC over each of OVER that was run, and its interval."""
    found = {}
    for ranker in rankers:
        runs = [(data.labels, {name: load_array(logits_file(out, seed, name, ranker)) for name in baselines})
                for seed in seeds]
        for name in baselines:
            over = [base for base in OVER if base in baselines and base != name]
            gains = [paired(runs, name, base) for base in over]
            found[f"{ranker}, {name}"] = {key: value for gain in gains for key, value in gain.items()}
    return found


def logits_file(out: Artifacts, seed: int, name: str, ranker: str) -> Path:
    """Of the test rows."""
    return out.pair_rates / "baselines" / f"{seed}-{name}-{ranker}.npy"


def one_baseline(
    name: str, data: Data, config: Config, out: Artifacts, seed: int, rankers: list[str], kept: KeptFigures
) -> dict[str, Any]:
    """{"alone" or ranker: figures of the table, and per pair those by bucket}."""

    @cache
    def made() -> PairRateFeatures:
        return made_by(name, data.graph, data.spec, config.pair_rates, seed)

    def without_ranker() -> dict[str, Any]:
        error = {"zero x 1e4": data.error(name, made())} if data.truth is not None else {}
        figures = {**error, "bytes": memory(made(), data.graph).own}
        return {"figures": figures, "buckets": data.by_bucket(alone(made(), data.test).T)}

    def with_ranker(ranker: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            chosen = None if name == "none" else made()
            logits = downstream(ranker, chosen, data.graph, config, out, seed, Path(folder))
        save_array(logits_file(out, seed, name, ranker), logits)
        figures = {f"{ranker} AUC": auc(data.labels, logits)}
        return {"figures": figures, "buckets": data.by_bucket([logits] * len(data.seen))}

    found = {} if name == "none" else {"alone": kept(f"{seed} {name} alone", without_ranker)}
    return found | {ranker: kept(f"{seed} {name} {ranker}", partial(with_ranker, ranker)) for ranker in rankers}


@dataclass(frozen=True)
class Data:
    """What baselines are measured on: graph, test rows, how often each pair of a row was seen, true rates if known."""

    graph: PairGraph
    spec: FeatureSpec
    manifest: GraphManifest
    test: ExampleSet
    labels: np.ndarray
    seen: list[np.ndarray]
    truth: Grid | None

    @classmethod
    def read(cls, config: Config, out: Artifacts) -> Data:
        graph, spec = PairGraph.read(out.pair_rates), FeatureSpec.read(out.encoding)
        manifest, test = GraphManifest.read(out.pair_rates), ExampleSet(out.examples("test"), spec)
        seen = [of_rows(graph, pair, test) for pair in graph.pairs]
        truth = true_rates(out, graph) if out.truth.exists() and PAIR in _pairs(graph) else None
        return cls(graph, spec, manifest, test, test.column(LABEL), seen, truth)

    def error(self, name: str, made: PairRateFeatures | None) -> float:
        """Of rates never seen together, x 10^4."""
        assert self.truth is not None
        return zero_bucket_mse({name: made} if made else {}, self.graph, self.truth)[name] * 1e4

    def by_bucket(self, logits: Iterable[np.ndarray]) -> list[dict[str, Any]]:
        """Per pair; `logits` [pairs, N]."""
        return [{name: cell.model_dump() for name, cell in auc_by_bucket(seen, self.labels, scores).items()}
                for seen, scores in zip(self.seen, logits, strict=True)]


def _about(graph: PairGraph, truth: Grid | None) -> dict[str, float]:
    """The shape of the data, and by how much the true rates of pairs never seen together vary."""
    edges = graph.edges.take(graph.targets)
    sizes = [(graph.slots[left], graph.slots[right]) for left, right in _pairs(graph)]
    found = {
        "pairs seen together": len(edges.relation), "pairs of all values": sum(left * right for left, right in sizes),
        "impressions of the pairs": float(edges.impressions.double().sum()),
        "clicks of the pairs": float(edges.clicks.double().sum()),
        "bytes, 12 a pair seen": TABLE_ENTRY * len(edges.relation),
        "bytes, 4 a pair of all": NUMBER * sum(left * right for left, right in sizes),
    }
    if truth is not None:
        rates, never = truth[2], never_seen(graph, truth)
        found |= {"pairs never seen": int(never.sum()), "variance of their rate x 1e4": float(rates[never].var() * 1e4)}
    return found


def other_worlds(config: Config, chosen: argparse.Namespace) -> dict[str, Any]:
    """The error over pairs never seen together in marketplaces whose seeds nothing was chosen on."""
    if config.simulation is None:
        raise ConfigError(f"{chosen.config} has no [simulation] section; worlds need one")
    found = {}
    for seed in range(config.seed + WORLD, config.seed + WORLD * (chosen.worlds + 1), WORLD):
        world, out = config.model_copy(update={"seed": seed}), Artifacts(chosen.out / f"world-{seed}")
        prepare(world, out, None, chosen.events)
        print(f"\nworld {seed}", flush=True)
        found[str(seed)] = compare(world, out, chosen.seeds, [], chosen.baselines)
    return found


def _pairs(graph: PairGraph) -> list[tuple[str, ...]]:
    return [tuple(graph.relations[number][:2]) for number in graph.pairs]


def _print_table(figures: Figures) -> None:
    columns = list(dict.fromkeys(name for values in figures.values() for name in values))
    print("| pair rates | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")
    for name, values in figures.items():
        print(f"| {name} | " + " | ".join(mean_and_deviation(values.get(column, [])) for column in columns) + " |")


def _print_gains(gains: dict[str, dict[str, float]]) -> None:
    print("\n| ranker, pair rates | over | gain of test AUC | 95% interval |\n|---|---|---|---|")
    for name, gain in gains.items():
        for base in (base for base in OVER if f"over {base}" in gain):
            value, low, high = (gain[f"over {base}{part}"] for part in ("", ", low", ", high"))
            print(f"| {name} | {base} | {value:+.4f} | {low:+.4f} to {high:+.4f} |")


def _print_buckets(buckets: dict[str, Any]) -> None:
    for pair, models in buckets.items():
        names = list(next(iter(models.values()))[0])
        print(f"\n| {pair} | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
        print("| rows | " + " | ".join(str(next(iter(models.values()))[0][name]["rows"]) for name in names) + " |")
        for model, runs in models.items():
            cells = ([run[name]["auc"] for run in runs if run[name]["auc"] is not None] for name in names)
            print(f"| {model} | " + " | ".join(map(mean_and_deviation, cells)) + " |")


def mean_and_deviation(values: list[float]) -> str:
    if not values:
        return ""
    if all(isinstance(value, int) for value in values):
        return f"{values[-1]:,}"
    return f"{spread.mean(values):.4f} ± {spread.stdev(values) if len(values) > 1 else 0.0:.4f}"


if __name__ == "__main__":
    main()
