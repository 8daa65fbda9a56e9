"""Do predicted pair rates know the truth, and do they help? Baselines against the marketplace's true rates, downstream.

The error is taken over the pairs of (city, brand) values that the statistics window never saw together. Downstream, one
ranker is trained for one epoch per baseline: a glance, of which `sluice bench pair_rates` is the long look.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from contracts.artifacts import LABEL, Artifacts
from contracts.config.config import Config
from contracts.features import vocabulary
from contracts.features.feature_spec import FIRST_ID, FeatureSpec
from contracts.summaries import summary
from contracts.summaries.demo import BaselineBytes, PairRateEvaluation
from contracts.summaries.pair_rates import PairRatesSummary
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet
from models.layers.pair_rate_features import PairRateFeatures
from models.pair_rates import weights as pair_weights
from models.pair_rates.baselines import downstream, made_by
from models.pair_rates.buckets import seen_together
from models.pair_rates.graph import PairGraph
from pipelines.marketplace.truth import PAIR, Truth

RANKER = "dnn"
SAMPLES = 100  # users, items and contexts that a true rate is the mean over
BASELINES = ("table", "factorisation", "pcf_gnn")
Grid = tuple[np.ndarray, np.ndarray, np.ndarray]


def evaluate_pair_rates(config: Config, out: Artifacts) -> PairRateEvaluation | None:
    """None where the pair of the truth has no pair rate."""
    spec = FeatureSpec.read(out.encoding)
    if not any(field.parts == PAIR for field in spec.pair_rates()):
        return None
    graph = PairGraph.read(out.pair_rates)
    made = {name: rates_of(name, graph, spec, config, out) for name in BASELINES}
    sizes = summary.required(out.pair_rates, PairRatesSummary, "sluice pretrain").bytes
    assert sizes is not None  # there is a pair
    return PairRateEvaluation(
        zero_bucket_mse=zero_bucket_mse(made, graph, true_rates(out, graph)),
        bytes=BaselineBytes(pcf_gnn=sizes.own, table=sizes.table, dense=sizes.dense),
        auc=_downstream(made, graph, config, out),
    )


def rates_of(name: str, graph: PairGraph, spec: FeatureSpec, config: Config, out: Artifacts) -> PairRateFeatures:
    """Of one of BASELINES; those that the run has pre-trained itself are not fitted once more."""
    if name != config.pair_rates.model or spec.pair_model is None:
        return made_by(name, graph, spec, config.pair_rates, config.seed)
    kept = PairRateFeatures(spec, spec.pair_model)
    pair_weights.load_pair_rates(kept, spec.pair_model, out.pair_rates)
    return kept


def true_rates(out: Artifacts, graph: PairGraph) -> Grid:
    """(ids of the left slot [L], of the right one [R], true rates [L, R]) of the values that the encoding knows."""
    truth, known = Truth.load(out.truth), vocabulary.read_all(out.encoding)
    ids = [known[name].look_up(list(truth.values[name]), "string") for name in PAIR]
    left, right = (slot >= FIRST_ID for slot in ids)
    return ids[0][left], ids[1][right], truth.pair_rate(SAMPLES)[np.ix_(left, right)]


def zero_bucket_mse(made: Mapping[str, PairRateFeatures], graph: PairGraph, grid: Grid) -> dict[str, float]:
    """Mean squared error of the predicted rate over pairs never seen together; `mean` predicts the window's rate."""
    left, right, rates = grid
    pair, never = _number(graph), never_seen(graph, grid)
    predicted = {"mean": np.full(rates.shape, float(graph.priors[pair]))}
    predicted |= {name: rates_of.rates(pair, left[:, None], right[None]) for name, rates_of in made.items()}
    return {name: float(np.square(rate - rates)[never].mean()) for name, rate in predicted.items()}


def never_seen(graph: PairGraph, grid: Grid) -> np.ndarray:
    """bool [L, R]: the pairs that the statistics window never saw together."""
    left, right, _ = grid
    return seen_together(graph, _number(graph), left[:, None], right[None]) == 0


def _number(graph: PairGraph) -> int:
    return graph.pairs[[graph.relations[number][:2] for number in graph.pairs].index(PAIR)]


def _downstream(
    made: Mapping[str, PairRateFeatures], graph: PairGraph, config: Config, out: Artifacts
) -> dict[str, float]:
    """Test AUC of one ranker with the pair rates of each baseline, and without."""
    labels = ExampleSet(out.examples("test"), FeatureSpec.read(out.encoding)).column(LABEL)
    quick = config.model_copy(update={"train": config.train.model_copy(update={"epochs": 1})})
    aucs = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, rates in {"none": None, **made}.items():
            aucs[name] = auc(labels, downstream(RANKER, rates, graph, quick, out, config.seed, Path(folder)))
    return aucs
