"""Baselines of the pre-trained pair rates: same graph, loss, seed and downstream model, another way to know a rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.config.training import PairRates
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet
from models.examples.validation_half import ValidationHalf
from models.layers.pair_rate_features import PairRateFeatures
from models.networks import registry
from models.pair_rates import network as pair_network
from models.pair_rates import pretraining as pair_pretraining
from models.pair_rates import weights as pair_weights
from models.pair_rates.graph import PairGraph
from models.pair_rates.strength import strengths
from models.training import fitting

BASELINES = ("none", "table", "factorisation", "two_tower", "pcf_gnn", "posterior")
COUNTED = "posterior"  # the graph's rate of a pair, corrected by what was counted of it
# Where a baseline does better than with the graph network's settings. Pseudo-impressions, theirs as well as the graph
# network's, were picked by the true error of one simulated world; other worlds confirm them (benchmarks/RESULTS.md).
OVERRIDES = {
    "factorisation": {"dim": 4, "learning_rate": 2e-3, "epochs": 20, "patience": 4, "pseudo_impressions": 2.0},
    "two_tower": {"epochs": 20, "patience": 4, "pseudo_impressions": 2.0},
}


def made_by(name: str, graph: PairGraph, spec: FeatureSpec, settings: PairRates, seed: int) -> PairRateFeatures:
    """The pair rates of one baseline, fitted with `settings` but for the model and what is best for it."""
    if name == "table":
        return pair_weights.table(graph, spec, settings)
    chosen = settings.model_copy(update={"model": name, **OVERRIDES.get(name, {})})
    torch.manual_seed(seed)
    network = pair_network.build(chosen, graph)
    pair_pretraining.fit(network, graph, chosen, seed)
    return pair_weights.from_network(network, graph, spec, strengths(network, graph, seed) if name == COUNTED else None)


def downstream(
    ranker: str, made: PairRateFeatures | None, graph: PairGraph, config: Config, out: Artifacts, seed: int,
    folder: Path,
) -> np.ndarray:
    """Test logits of a ranker trained with these pair rates (None: without any); `folder` takes their weights."""
    spec = pair_weights.without_pair_rates(FeatureSpec.read(out.encoding))
    if made is not None:
        spec = pair_weights.publish(made, spec, pair_weights.pairs_of(graph), config.pair_rates, folder)
    torch.manual_seed(seed)
    network = registry.build(ranker, spec, config.train)
    pair_weights.load_into(network, spec, folder)
    train, test = (ExampleSet(out.examples(window), spec) for window in ("train", "test"))
    validation = ValidationHalf(out.examples("validation"), spec, 0)
    fitting.fit(network, train, validation, config.train, seed, positions=spec.positions,
                negative_rate=config.features.negative_rate)
    return fitting.predict(network, test)
