"""What the crosses are worth, beside baselines of the same budget and a reference from outside, on a bounded sample.

Part by part: a comparison that is stopped finds again what it has finished, and the network that it trained.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import torch

from contracts.artifacts import LABEL, Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.features.found_crosses import cross_name
from contracts.progress import counted, report
from contracts.summaries.crosses import BoostedTreesFigures, CrossComparison, RepresentationFigures, VariantFigures
from models.cross_search import baselines as cross_baselines
from models.cross_search import columns as cross_columns
from models.cross_search.columns import CrossColumns
from models.cross_search.derivation import Cross
from models.cross_search.downstream_model import DownstreamModel, compared
from models.cross_search.outcome import SearchOutcome
from models.cross_search.pruning import GainEstimator, select
from models.distributed.kept_parts import KeptParts
from models.distributed.run_checkpoint import RunCheckpoint
from models.evaluation import boosted_trees
from models.evaluation.metrics import auc
from models.examples import in_memory as array_examples
from models.examples.batches import ExampleSet
from models.examples.in_memory import ArrayExamples, Rows
from models.networks import registry
from models.training import fitting
from models.training.progress import batch_counter

DRAWS = 100
RIDGES, CROSS_RIDGES, ITERATIONS = (8.0, 32.0), (10.0, 30.0), 40
HASHED_ROWS, HASH_BUCKETS = 10_000, 1_000
REPRESENTATIONS = ("none", "embedding", "product")
NETWORK = "dnn"  # that the representations are compared in


def compare_variants(
    config: Config, out: Artifacts, spec: FeatureSpec, search: SearchOutcome, seed: int, parts: KeptParts | None = None,
) -> CrossComparison | None:
    """None with `crosses.compare_rows` = 0. Ridges are chosen on the validation window, figures are of the test window;
    the first `compare_rows` rows drawn of each. `parts` keeps what is finished, for a comparison that is stopped."""
    parts = parts or KeptParts(None)
    limit = config.crosses.compare_rows
    if not limit:
        return None
    windows = {name: ExampleSet(out.examples(name), spec) for name in ("train", "validation", "test")}
    sampled = {name: cross_columns.read(examples, spec, limit, seed) for name, examples in windows.items()}
    rows = {name: array_examples.rows_of(examples, spec, limit, seed) for name, examples in windows.items()}
    train = ArrayExamples(out.examples("train"), spec, rows["train"])
    return CrossComparison(
        variants=parts.once("variants", dict[str, VariantFigures], lambda kept: logistic_variants(
            config, search, sampled, train, seed, kept)),
        representations={kind: parts.once(f"network_{kind}", RepresentationFigures, functools.partial(
            representation, kind, config, out, spec, search, rows, seed)) for kind in REPRESENTATIONS},
        lightgbm=parts.once("lightgbm", BoostedTreesFigures | None, lambda _: boosted(out, spec, rows, seed)),
        compare_rows=len(rows["train"]),
    )


def baseline_sets(
    config: Config, search: SearchOutcome, train: ExampleSet, seed: int, kept: RunCheckpoint | None = None,
) -> dict[str, list[Cross]]:
    """Every baseline's crosses, as many as the search may keep; `kept` keeps the network of one of them."""
    settings, allowed, columns = config.crosses, search.allowed, search.columns
    report("baselines")
    exhaustive = select(
        GainEstimator(columns, search.folds), cross_baselines.pairs(allowed), budget=settings.budget,
        max_keys=settings.max_keys, min_count=settings.min_count, min_gain=settings.min_gain)
    torch.manual_seed(seed)
    network = registry.build(NETWORK, train.spec, config.train)
    fitting.fit(network, train, train, config.train.model_copy(update={"epochs": 1}), seed, kept=kept)
    return {
        "random": cross_baselines.random_crosses(allowed, settings.budget, seed),
        "information": cross_baselines.most_informative(columns, allowed, settings.budget),
        "taylor": cross_baselines.taylor_crosses(network, train, columns, allowed, settings.budget),
        "exhaustive": [selected.cross for selected in exhaustive],
    }


def logistic_variants(
    config: Config, search: SearchOutcome, sampled: dict[str, CrossColumns], train: ExampleSet, seed: int,
    kept: RunCheckpoint | None = None,
) -> dict[str, VariantFigures]:
    """Logistic regression with each set of crosses; all pairs hashed on at most HASHED_ROWS training rows."""
    model = DownstreamModel(
        train=sampled["train"], validation=sampled["validation"], test=sampled["test"], base_ridges=RIDGES,
        cross_ridges=CROSS_RIDGES, iterations=ITERATIONS)
    base, label = model.without_crosses(), sampled["test"].label
    sets = {"fives": [selected.cross for selected in search.selected],
            **baseline_sets(config, search, train, seed, kept)}
    found = {"none": base.figures()}
    for name in counted("logistic regressions", sets):
        crosses = sets[name]
        variant = model.with_crosses(crosses, base.base_ridge)
        found[name] = compared(variant, base, label, DRAWS, seed)
    small = replace(model, train=_first(sampled["train"]), validation=_first(sampled["validation"]),
                    base_ridges=(base.base_ridge,), cross_ridges=CROSS_RIDGES[1:])
    hashed = small.with_crosses(cross_baselines.pairs(search.allowed), base.base_ridge, HASH_BUCKETS)
    figures = compared(hashed, small.without_crosses(), label, DRAWS, seed)
    found["all_pairs_hashed"] = figures.model_copy(update={"rows": small.train.rows})
    return found


def _first(columns: CrossColumns) -> CrossColumns:
    step = max(1, columns.rows // HASHED_ROWS)
    return columns.take(np.arange(0, columns.rows, step))


def representation(
    kind: str, config: Config, out: Artifacts, spec: FeatureSpec, search: SearchOutcome, rows: dict[str, Rows],
    seed: int, kept: RunCheckpoint | None = None,
) -> RepresentationFigures:
    """The deep network with the crosses as `kind` of REPRESENTATIONS: left out, with vectors of their own, or as
    products of factors."""
    crosses = [(cross_name(parts), parts) for parts in (search.parts(selected.cross) for selected in search.selected)]
    wanted = [] if kind == "none" else crosses
    made, parts = array_examples.examples_with_crosses(
        spec, rows, wanted, kind if wanted else "embedding", config.crosses.min_count)
    examples = {name: ArrayExamples(out.examples(name), made, part) for name, part in parts.items()}
    torch.manual_seed(seed)
    network = registry.build(NETWORK, made, config.train)
    fitting.fit(network, examples["train"], examples["validation"], config.train, seed, positions=made.positions,
                on_batch=batch_counter(report, f"network, crosses as {kind}", config.train.epochs), kept=kept)
    weights = sum(parameter.numel() for parameter in network.parameters())
    logits = fitting.predict(network, examples["test"])
    return RepresentationFigures(auc=auc(examples["test"].column(LABEL), logits), weights=weights)


def boosted(out: Artifacts, spec: FeatureSpec, rows: dict[str, Rows], seed: int) -> BoostedTreesFigures | None:
    """LightGBM on the same rows; None where it is not installed."""
    if not boosted_trees.available():
        return None
    examples = {name: ArrayExamples(out.examples(name), spec, part) for name, part in rows.items()}
    frequent = boosted_trees.frequent_values(examples["train"], spec)
    tables = {name: boosted_trees.raw_columns(part, spec, frequent) for name, part in examples.items()}
    (train, categories), (validation, _), (test, _) = (tables[name] for name in ("train", "validation", "test"))
    label = {name: part.column(LABEL) for name, part in examples.items()}
    logits, validation_auc = boosted_trees.fit_and_predict(
        (train, label["train"]), (validation, label["validation"]), test, categories, seed)
    return BoostedTreesFigures(auc=auc(label["test"], logits), validation_auc=validation_auc)
