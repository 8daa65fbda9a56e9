"""What the crosses are worth, beside baselines of the same budget and a reference from outside, on a bounded sample.

Part by part: a comparison that is stopped finds again what it has finished, and the network that it trained. What the
crosses are compared with (`rivals`) needs no search, and may be made beside one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

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
from models.cross_search.outcome import SearchOutcome, SearchSpace
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
PLAIN = "none"  # without any cross
REPRESENTATIONS = (PLAIN, "embedding", "product")
NETWORK = "dnn"  # that the representations are compared in


class Sampled(NamedTuple):
    """The first `compare_rows` rows drawn of each window, as columns to cross and as rows of a network."""

    columns: dict[str, CrossColumns]
    rows: dict[str, Rows]

    @classmethod
    def read(cls, config: Config, out: Artifacts, spec: FeatureSpec, seed: int) -> Sampled:
        """Reads the examples, and none after it."""
        limit = config.crosses.compare_rows
        windows = {name: ExampleSet(out.examples(name), spec) for name in ("train", "validation", "test")}
        return cls({name: cross_columns.read(examples, spec, limit, seed) for name, examples in windows.items()},
                   {name: array_examples.rows_of(examples, spec, limit, seed) for name, examples in windows.items()})

    def model(self, base_ridges: Sequence[float] = RIDGES) -> DownstreamModel:
        """What every set of crosses is given to."""
        return DownstreamModel(**self.columns, base_ridges=base_ridges, cross_ridges=CROSS_RIDGES,
                               iterations=ITERATIONS)


class Rivals(NamedTuple):
    """What the crosses of a search are compared with."""

    variants: dict[str, VariantFigures]
    network: RepresentationFigures
    lightgbm: BoostedTreesFigures | None


def compare_variants(
    config: Config, out: Artifacts, spec: FeatureSpec, search: SearchOutcome, seed: int, parts: KeptParts | None = None,
) -> CrossComparison | None:
    """None with `crosses.compare_rows` = 0. Ridges are chosen on the validation window, figures are of the test window.
    `parts` keeps what is finished, for a comparison that is stopped."""
    parts = parts or KeptParts(None)
    if not config.crosses.compare_rows:
        return None
    sampled = Sampled.read(config, out, spec, seed)
    known = rivals(config, out, spec, search, sampled, seed, parts)
    base = known.variants[PLAIN]
    fives = parts.once("fives", VariantFigures, lambda _: found_variant(search, sampled, base.base_ridge, seed))
    crosses = [(cross_name(names), names) for names in (search.parts(selected.cross) for selected in search.selected)]
    networks = {kind: parts.once(f"network_{kind}", RepresentationFigures, functools.partial(
        representation, kind, config, out, spec, crosses, sampled.rows, seed)) for kind in REPRESENTATIONS[1:]}
    return CrossComparison(
        variants={PLAIN: base, "fives": fives, **known.variants}, representations={PLAIN: known.network, **networks},
        lightgbm=known.lightgbm, compare_rows=len(sampled.rows["train"]),
    )


def rivals(
    config: Config, out: Artifacts, spec: FeatureSpec, space: SearchSpace, sampled: Sampled, seed: int, parts: KeptParts
) -> Rivals:
    """All but the search's own crosses, each once."""
    train = ArrayExamples(out.examples("train"), spec, sampled.rows["train"])
    return Rivals(
        variants=parts.once("variants", dict[str, VariantFigures], lambda kept: logistic_variants(
            config, space, sampled, train, seed, kept)),
        network=parts.once(f"network_{PLAIN}", RepresentationFigures, functools.partial(
            representation, PLAIN, config, out, spec, [], sampled.rows, seed)),
        lightgbm=parts.once("lightgbm", BoostedTreesFigures | None, lambda _: boosted(out, spec, sampled.rows, seed)),
    )


def baseline_sets(
    config: Config, space: SearchSpace, train: ExampleSet, seed: int, kept: RunCheckpoint | None = None,
) -> dict[str, list[Cross]]:
    """Every baseline's crosses, as many as the search may keep; `kept` keeps the network of one of them."""
    settings, allowed, columns = config.crosses, space.allowed, space.columns
    report("baselines")
    exhaustive = select(
        GainEstimator(columns, space.folds), cross_baselines.pairs(allowed), budget=settings.budget,
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
    config: Config, space: SearchSpace, sampled: Sampled, train: ExampleSet, seed: int,
    kept: RunCheckpoint | None = None,
) -> dict[str, VariantFigures]:
    """Logistic regression without crosses and with each baseline's; all pairs hashed on at most HASHED_ROWS training
    rows."""
    model, label = sampled.model(), sampled.columns["test"].label
    base, sets = model.without_crosses(), baseline_sets(config, space, train, seed, kept)
    found = {PLAIN: base.figures()}
    for name in counted("logistic regressions", sets):
        variant = model.with_crosses(sets[name], base.base_ridge)
        found[name] = compared(variant, base, label, DRAWS, seed)
    small = replace(model, train=_first(sampled.columns["train"]), validation=_first(sampled.columns["validation"]),
                    base_ridges=(base.base_ridge,), cross_ridges=CROSS_RIDGES[1:])
    hashed = small.with_crosses(cross_baselines.pairs(space.allowed), base.base_ridge, HASH_BUCKETS)
    figures = compared(hashed, small.without_crosses(), label, DRAWS, seed)
    found["all_pairs_hashed"] = figures.model_copy(update={"rows": small.train.rows})
    return found


def found_variant(search: SearchOutcome, sampled: Sampled, base_ridge: float, seed: int) -> VariantFigures:
    """Logistic regression with the search's crosses, beside that without any at `base_ridge`, its best."""
    report("logistic regression with the crosses found")
    model = sampled.model((base_ridge,))
    variant = model.with_crosses([selected.cross for selected in search.selected], base_ridge)
    return compared(variant, model.without_crosses(), sampled.columns["test"].label, DRAWS, seed)


def _first(columns: CrossColumns) -> CrossColumns:
    step = max(1, columns.rows // HASHED_ROWS)
    return columns.take(np.arange(0, columns.rows, step))


def representation(
    kind: str, config: Config, out: Artifacts, spec: FeatureSpec, crosses: Sequence[tuple[str, tuple[str, ...]]],
    rows: dict[str, Rows], seed: int, kept: RunCheckpoint | None = None,
) -> RepresentationFigures:
    """The deep network with the crosses (name, parts) as `kind` of REPRESENTATIONS: none given, with vectors of their
    own, or as products of factors."""
    made, parts = array_examples.examples_with_crosses(
        spec, rows, crosses, "embedding" if kind == PLAIN else kind, config.crosses.min_count)
    examples = {name: ArrayExamples(out.examples(name), made, part) for name, part in parts.items()}
    torch.manual_seed(seed)
    network = registry.build(NETWORK, made, config.train)
    fitting.fit(network, examples["train"], examples["validation"], config.train, seed, positions=made.positions,
                on_batch=batch_counter(report, f"network, crosses as {kind}", config.train.epochs), kept=kept,
                negative_rate=config.features.negative_rate)
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
