"""What the crosses are worth, beside rivals of the same budget and a reference from outside, on a bounded sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from contracts.artifacts import LABEL, Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.features.found_crosses import FoundCross, cross_name
from models.cross_search import baselines as cross_rivals
from models.cross_search import columns as cross_columns
from models.cross_search.columns import CrossColumns
from models.cross_search.comparison import Consumer, compared
from models.cross_search.derivation import Cross
from models.cross_search.pruning import Fold, GainJudge, Selected, select
from models.evaluation import boosted_trees
from models.evaluation.metrics import auc
from models.examples import in_memory as array_examples
from models.examples.batches import ExampleSet
from models.examples.in_memory import ArrayExamples, Rows
from models.networks import registry
from models.training import loop as training_loop

DRAWS = 100
RIDGES, CROSS_RIDGES, ITERATIONS = (8.0, 32.0), (10.0, 30.0), 40
HASHED_ROWS, HASH_BUCKETS = 10_000, 1_000
REPRESENTATIONS = ("none", "embedding", "product")
CONSUMER = "dnn"  # of the representations


@dataclass(frozen=True)
class Search:
    """What one search saw and found. `proposals` by importance, `selected` by gain."""

    columns: CrossColumns
    folds: list[Fold]
    allowed: np.ndarray
    adjacency: list[np.ndarray]
    proposals: dict[Cross, float]
    selected: list[Selected]
    min_count: int
    representation: str
    history: list[dict[str, Any]]
    rows_per_second: float
    seconds: dict[str, float]

    def parts(self, cross: Cross) -> tuple[str, ...]:
        return tuple(self.columns.slots[one].name for one in sorted(cross))

    def found(self) -> list[FoundCross]:
        return [
            FoundCross(
                name=cross_name(self.parts(one.cross)), parts=self.parts(one.cross),
                importance=round(self.proposals[one.cross], 6), gain=round(one.gain, 3), support=one.support,
                min_count=self.min_count, representation=self.representation,  # type: ignore[arg-type]
            )
            for one in self.selected
        ]


def compare_arms(config: Config, out: Artifacts, spec: FeatureSpec, search: Search, seed: int) -> dict[str, Any]:
    """`arms` (one consumer, many sets of crosses), `representations` and `lightgbm`; nothing with compare_rows = 0."""
    if not config.crosses.compare_rows:
        return {}
    limit = config.crosses.compare_rows
    windows = {name: ExampleSet(out.examples(name), spec) for name in ("train", "validation", "test")}
    sampled = {name: cross_columns.read(examples, spec, limit, seed) for name, examples in windows.items()}
    rows = {name: array_examples.rows_of(examples, spec, limit, seed) for name, examples in windows.items()}
    return {
        "arms": logistic_arms(config, search, sampled, ArrayExamples(out.examples("train"), spec, rows["train"]), seed),
        "representations": representations(config, out, spec, search, rows, seed),
        "lightgbm": boosted(out, spec, rows, seed),
        "compare_rows": len(rows["train"]),
    }


def rival_sets(config: Config, search: Search, train: ExampleSet, seed: int) -> dict[str, list[Cross]]:
    """Every rival's crosses, as many as the search may keep."""
    budget, allowed, columns = config.crosses.budget, search.allowed, search.columns
    settings = config.crosses
    exhaustive = select(GainJudge(columns, search.folds), cross_rivals.pairs(allowed), budget, settings.max_keys,
                        settings.min_count, settings.min_gain)
    torch.manual_seed(seed)
    network = registry.build(CONSUMER, train.spec, config.train)
    training_loop.fit(network, train, train, config.train.model_copy(update={"epochs": 1}), seed)
    return {
        "random": cross_rivals.random_crosses(allowed, budget, seed),
        "information": cross_rivals.most_informative(columns, allowed, budget),
        "taylor": cross_rivals.taylor_crosses(network, train, columns, allowed, budget),
        "exhaustive": [one.cross for one in exhaustive],
    }


def logistic_arms(
    config: Config, search: Search, sampled: dict[str, CrossColumns], train: ExampleSet, seed: int
) -> dict[str, dict[str, Any]]:
    """AUC of logistic regression with each set of crosses; all pairs hashed on at most HASHED_ROWS training rows."""
    consumer = Consumer(sampled["train"], sampled["validation"], sampled["test"], RIDGES, CROSS_RIDGES, ITERATIONS)
    base, label = consumer.without(), sampled["test"].label
    sets = {"fives": [one.cross for one in search.selected], **rival_sets(config, search, train, seed)}
    found: dict[str, dict[str, Any]] = {"none": base.figures()}
    for name, crosses in sets.items():
        arm = consumer.with_crosses(crosses, base.base_ridge)
        found[name] = compared(arm, base, label, DRAWS, seed)
    small = Consumer(_first(sampled["train"]), _first(sampled["validation"]), sampled["test"], (base.base_ridge,),
                     CROSS_RIDGES[1:], ITERATIONS)
    hashed = small.with_crosses(cross_rivals.pairs(search.allowed), base.base_ridge, HASH_BUCKETS)
    found["all_pairs_hashed"] = {**compared(hashed, small.without(), label, DRAWS, seed), "rows": small.train.rows}
    return found


def _first(columns: CrossColumns) -> CrossColumns:
    step = max(1, columns.rows // HASHED_ROWS)
    return columns.take(np.arange(0, columns.rows, step))


def representations(
    config: Config, out: Artifacts, spec: FeatureSpec, search: Search, rows: dict[str, Rows], seed: int
) -> dict[str, dict[str, float]]:
    """AUC of the deep consumer with the crosses left out, with vectors of their own, and as products of factors."""
    crosses = [(cross_name(search.parts(one.cross)), search.parts(one.cross)) for one in search.selected]
    found = {}
    for kind in REPRESENTATIONS:
        wanted = [] if kind == "none" else crosses
        made, parts = array_examples.with_crosses(spec, rows, wanted, kind if wanted else "embedding",
                                                  config.crosses.min_count)
        examples = {name: ArrayExamples(out.examples(name), made, part) for name, part in parts.items()}
        torch.manual_seed(seed)
        network = registry.build(CONSUMER, made, config.train)
        training_loop.fit(network, examples["train"], examples["validation"], config.train, seed,
                          positions=made.positions)
        weights = sum(parameter.numel() for parameter in network.parameters())
        found[kind] = {"auc": auc(examples["test"].column(LABEL), training_loop.predict(network, examples["test"])),
                       "weights": weights}
    return found


def boosted(out: Artifacts, spec: FeatureSpec, rows: dict[str, Rows], seed: int) -> dict[str, float] | None:
    """AUC of LightGBM on the same rows; None where it is not installed."""
    if not boosted_trees.available():
        return None
    examples = {name: ArrayExamples(out.examples(name), spec, part) for name, part in rows.items()}
    frequent = boosted_trees.frequent_values(examples["train"], spec)
    tables = {name: boosted_trees.raw_columns(part, spec, frequent) for name, part in examples.items()}
    (train, categories), (validation, _), (test, _) = (tables[name] for name in ("train", "validation", "test"))
    label = {name: part.column(LABEL) for name, part in examples.items()}
    logits, validation_auc = boosted_trees.fit_and_predict(
        (train, label["train"]), (validation, label["validation"]), test, categories, seed)
    return {"auc": auc(label["test"], logits), "validation_auc": validation_auc}
