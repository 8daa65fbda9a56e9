"""The crosses of FIVES against baselines on Adult and Bank: two tables and their JSON.

    sluice bench crosses --data DIR --out OUT --seeds 5 [--tables adult bank] [--arms linear networks]

DIR holds adult.data, adult.test and bank-additional-full.csv, at any depth.

Per seed the training rows are split anew (Bank's test rows too), features are made, crosses are searched in the
training window, and every set of crosses goes to the same logistic regression with penalties tuned on validation.
FIVES, DNN and DCNv2 are predictors by themselves and with the crosses; "best ranker", beside LightGBM, is the mean
logit of three DNNs with them, of the layers of `sluice bench peers`. Gains are paired on the same test rows; their
intervals come from a bootstrap over rows and seeds. The second table, of --arms linear, has the paper's weaker footing:
numbers in ten bins. Prints Markdown; the last line is one JSON object, also written to OUT/crosses.json.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from contracts.artifacts import LABEL, Artifacts
from contracts.config.config import Config, load
from contracts.config.training import Train
from contracts.errors import DataError
from contracts.features.feature_spec import FeatureSpec
from models.cross_search import columns as cross_columns
from models.cross_search.baselines import pairs
from models.cross_search.comparison import baseline_sets
from models.cross_search.downstream_model import DownstreamModel
from models.cross_search.job import search_crosses, search_space, without_crosses
from models.cross_search.outcome import SearchOutcome
from models.evaluation.boosted_trees import fit_and_predict, frequent_values, raw_columns
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet
from models.examples.in_memory import ArrayExamples, examples_with_crosses, rows_of
from models.networks import registry
from models.training import fitting
from sluice.run import jobs

FILES = {"adult": "adult.data", "bank": "bank-additional-full.csv"}
EXAMPLES = Path(__file__).parents[2] / "examples"
PAPER = {  # Xie et al., KDD 2021: AUC as predictor, gain of AUC in per cent over its own logistic regression
    "adult": {"logistic regression": 0.8836, "DNN": 0.8869, "FIVES": 0.8863, "gain": 0.14},
    "bank": {"logistic regression": 0.9377, "DNN": 0.9435, "FIVES": 0.9446, "gain": 0.01},
}
BINS = 10
EVERY_ROW = 10**9
HASH_BUCKETS = 1_000
DRAWS = 200
NETWORKS = {"fives": "FIVES, predictor", "dnn": "DNN", "dcn_v2": "DCNv2"}
BEST = Train(hidden=(400, 400, 400), embedding_dim=10, epochs=30)
MEMBERS, MEMBER_STEP = 3, 10_000
ARMS = ("linear", "networks")
BASES = ("LR", "DNN", "DCNv2", "LightGBM")
Logits = dict[str, np.ndarray]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", nargs="+", choices=list(PAPER), default=list(PAPER))
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS, help="logistic regression with every set of "
                        "crosses; networks, with and without those found, and LightGBM")
    arguments = parser.parse_args(argv)
    folders = {name: folder_of(arguments.data, FILES[name]) for name in arguments.tables}
    found = {name: bench(name, folder, arguments.out, arguments.seeds, arguments.arms)
             for name, folder in folders.items()}
    for name, tables in found.items():
        for footing, rows in tables.items():
            print_table(f"{name}, {footing}", rows, PAPER[name])
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "crosses.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found))


def folder_of(data: Path, file: str) -> Path:
    """Raises DataError where no folder below `data` holds the file."""
    found = sorted(data.rglob(file))
    if not found:
        raise DataError(f"no {file} below {data}; download it there, or leave its table out with --tables")
    return found[0].parent


def bench(
    name: str, data: Path, out: Path, seeds: int, kinds: Sequence[str] = ARMS
) -> dict[str, dict[str, dict[str, Any]]]:
    """Per footing and arm: the AUC of every seed, their mean and deviation, the gain over LR and its interval."""
    runs: dict[str, list[tuple[np.ndarray, Logits]]] = {"all bins": [], "ten bins": []}
    for seed in range(seeds):
        config = load(EXAMPLES / f"{name}.toml").model_copy(update={"seed": seed})
        artifacts = Artifacts(out / f"{name}-{seed}")
        jobs.run_features(config, data, artifacts, Console(stderr=True))
        spec = without_crosses(FeatureSpec.read(artifacts.encoding))
        label = ExampleSet(artifacts.examples("test"), spec).column(LABEL)
        search = searched(config, artifacts, spec, seed)
        every = arms(config, artifacts, search, spec, seed) if "linear" in kinds else {}
        if "networks" in kinds:
            every |= networks(config, artifacts, search, spec, seed)
        runs["all bins"].append((label, every))
        if "linear" in kinds:
            few = coarse(spec)
            weaker = arms(config, artifacts, searched(config, artifacts, few, seed), few, seed, baselines=False)
            runs["ten bins"].append((label, weaker))
    return {footing: summed_up(parts) for footing, parts in runs.items() if parts}


def coarse(spec: FeatureSpec) -> FeatureSpec:
    """Numbers at ten bins alone."""
    fields = (field.model_copy(update={"edges": {g: e for g, e in field.edges.items() if g == BINS}})
              for field in spec.fields)
    return spec.model_copy(update={"fields": tuple(fields)})


def searched(config: Config, out: Artifacts, spec: FeatureSpec, seed: int) -> SearchOutcome:
    columns = cross_columns.read(ExampleSet(out.examples("train"), spec), spec, EVERY_ROW, seed)
    return search_crosses(config, out, spec, search_space(config, out, spec, columns, seed), seed, None)


def arms(
    config: Config, out: Artifacts, search: SearchOutcome, spec: FeatureSpec, seed: int, baselines: bool = True
) -> Logits:
    """Test logits of logistic regression without crosses and with each set of them."""
    windows = {name: ExampleSet(out.examples(name), spec) for name in ("train", "validation", "test")}
    read = {name: cross_columns.read(examples, spec, EVERY_ROW, seed) for name, examples in windows.items()}
    model = DownstreamModel(train=read["train"], validation=read["validation"], test=read["test"])
    base = model.without_crosses()
    sets = {"LR + FIVES": [selected.cross for selected in search.selected]}
    if baselines:
        train = ArrayExamples(out.examples("train"), spec, rows_of(windows["train"], spec, EVERY_ROW, seed))
        sets |= {f"LR + {name}": crosses for name, crosses in baseline_sets(config, search, train, seed).items()}
    found = {"LR": base.test_logits}
    found |= {name: model.with_crosses(crosses, base.base_ridge).test_logits for name, crosses in sets.items()}
    if baselines:
        hashed = model.with_crosses(pairs(search.allowed), base.base_ridge, HASH_BUCKETS)
        found["LR + all pairs hashed"] = hashed.test_logits
    return found


def networks(config: Config, out: Artifacts, search: SearchOutcome, spec: FeatureSpec, seed: int) -> Logits:
    """Test logits of NETWORKS, each without and with the crosses found, of the best ranker and of LightGBM."""
    windows = {name: ExampleSet(out.examples(name), spec) for name in ("train", "validation", "test")}
    rows = {name: rows_of(examples, spec, EVERY_ROW, seed) for name, examples in windows.items()}
    crosses = [(cross.name, cross.parts) for cross in search.found()]
    crossed, crossed_rows = examples_with_crosses(spec, rows, crosses, "embedding", config.crosses.min_count)
    sets = {more: {window: ArrayExamples(out.examples(window), made, part) for window, part in parts.items()}
            for more, made, parts in (("", spec, rows), (" + crosses", crossed, crossed_rows))}
    found = {title + more: fitted(name, examples, config.train, seed)
             for name, title in NETWORKS.items() for more, examples in sets.items()}
    members = [fitted("dnn", sets[" + crosses"], BEST, seed + MEMBER_STEP * number) for number in range(MEMBERS)]
    found["best ranker"] = np.mean(members, axis=0)
    frequent = frequent_values(windows["train"], spec)
    tables = {name: raw_columns(examples, spec, frequent) for name, examples in windows.items()}
    (train, categories), (validation, _), (test, _) = (tables[name] for name in ("train", "validation", "test"))
    label = {name: examples.column(LABEL) for name, examples in windows.items()}
    found["LightGBM"], _ = fit_and_predict(
        (train, label["train"]), (validation, label["validation"]), test, categories, seed)
    return found


def fitted(name: str, examples: Mapping[str, ArrayExamples], settings: Train, seed: int) -> np.ndarray:
    """Test logits."""
    torch.manual_seed(seed)
    network = registry.build(name, examples["train"].spec, settings)
    fitting.fit(network, examples["train"], examples["validation"], settings, seed)
    return fitting.predict(network, examples["test"])


def summed_up(runs: list[tuple[np.ndarray, Logits]]) -> dict[str, dict[str, Any]]:
    found = {}
    for arm in runs[0][1]:
        values = [auc(label, logits[arm]) for label, logits in runs]
        found[arm] = {"auc": values, "mean": statistics.mean(values), "deviation": _deviation(values)}
        for base in {*BASES} & set(runs[0][1]):
            found[arm] |= paired(runs, arm, base)
    return found


def paired(runs: list[tuple[np.ndarray, Logits]], arm: str, base: str) -> dict[str, float]:
    """Mean difference of AUC to `base` over the seeds, with the 2.5% and 97.5% points over draws of seeds and rows.
    Rows that all seeds are tested on are drawn for all of them at once: more seeds do not make them more."""
    count, shared = len(runs), all(np.array_equal(label, runs[0][0]) for label, _ in runs)
    exact = np.array([auc(label, logits[arm]) - auc(label, logits[base]) for label, logits in runs])
    drawn = np.array([_differences(label, logits[arm], logits[base], 0 if shared else seed)
                      for seed, (label, logits) in enumerate(runs)]) - exact[:, None]
    generator = np.random.default_rng(0)
    seeds = generator.integers(0, count, size=(DRAWS * 10, count))
    by_seeds = (exact - exact.mean())[seeds].mean(axis=1) * math.sqrt(count / max(count - 1, 1))
    by_rows = drawn[np.arange(count), generator.integers(0, DRAWS, size=(len(seeds), 1 if shared else count))]
    low, high = np.quantile(exact.mean() + by_seeds + by_rows.mean(axis=1), (0.025, 0.975))
    return {f"over {base}": float(exact.mean()), f"over {base}, low": float(low), f"over {base}, high": float(high)}


def _differences(label: np.ndarray, arm: np.ndarray, base: np.ndarray, seed: int) -> list[float]:
    generator = np.random.default_rng(seed)
    drawn = (generator.integers(0, len(label), len(label)) for _ in range(DRAWS))
    return [auc(label[rows], arm[rows]) - auc(label[rows], base[rows]) for rows in drawn]


def _deviation(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def print_table(title: str, rows: Mapping[str, Mapping[str, Any]], paper: Mapping[str, float]) -> None:
    print(f"\n{title} (the paper: {', '.join(f'{name} {value:g}' for name, value in paper.items())} %)\n")
    bases = [base for base in BASES if base in rows]
    print("| arm | test AUC |", *(f"over {base} (95% interval) |" for base in bases))
    print("|---|---|", "---|" * len(bases), sep="")
    for arm, row in rows.items():
        gains = (f" {row[f'over {base}']:+.4f} ({row[f'over {base}, low']:+.4f} to {row[f'over {base}, high']:+.4f}) |"
                 for base in bases)
        print(f"| {arm} | {row['mean']:.4f} ± {row['deviation']:.4f} |{''.join(gains)}")


if __name__ == "__main__":
    main()
