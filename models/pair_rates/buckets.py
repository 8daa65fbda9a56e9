"""Test rows by how often the statistics window saw their pair, and AUC in each bucket: 0, 1-10, 11-100, more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from contracts.artifacts import LABEL, TEST_LOGITS, WEIGHTS, Artifacts
from contracts.bundle.bundle import load_array
from contracts.features.feature_spec import FeatureSpec
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet
from models.layers.pair_rate_features import PairRateFeatures
from models.pair_rates.graph import PairGraph
from models.training import checkpoint

BUCKETS = {"0": (0, 0), "1-10": (1, 10), "11-100": (11, 100), ">100": (101, np.inf)}


def seen_together(graph: PairGraph, pair: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Impressions in the window of each pair of ids local to their slots, [...], [...] (broadcast) -> [...]."""
    relation = graph.relations[pair]
    own = (graph.edges.relation == pair).numpy()
    size = graph.slots[relation.right]
    lefts = graph.edges.left.numpy()[own].astype(np.int64) - graph.starts[relation.left]
    codes = lefts * size + graph.edges.right.numpy()[own] - graph.starts[relation.right]
    order = np.argsort(codes)
    codes, shown = codes[order], graph.edges.impressions.numpy()[own][order]
    asked = left.astype(np.int64) * size + right
    if not len(codes):
        return np.zeros(asked.shape)
    place = np.minimum(np.searchsorted(codes, asked), len(codes) - 1)
    return np.where(codes[place] == asked, shown[place], 0)


def of_rows(graph: PairGraph, pair: int, examples: ExampleSet) -> np.ndarray:
    """Impressions of each row's pair [N]; of lists of values, the most of any."""
    left, right = (examples.column(slot).reshape(examples.rows, -1) for slot in graph.relations[pair][:2])
    return seen_together(graph, pair, left[:, :, None], right[:, None, :]).max(axis=(1, 2))


def auc_by_bucket(seen: np.ndarray, labels: np.ndarray, logits: np.ndarray) -> dict[str, dict[str, Any]]:
    """Per bucket its rows, positives and AUC (None where its labels are of one class)."""
    found = {}
    for name, (least, most) in BUCKETS.items():
        own = (seen >= least) & (seen <= most)
        positives = int(labels[own].sum())
        both = 0 < positives < own.sum()
        found[name] = {
            "rows": int(own.sum()), "positives": positives, "auc": auc(labels[own], logits[own]) if both else None
        }
    return found


def co_occurrence(out: Artifacts, spec: FeatureSpec, models: Iterable[str]) -> dict[str, dict[str, Any]]:
    """{statistic: {model: figures by bucket}} from the models' test logits; "statistic" is the predicted rate alone."""
    if spec.pair_model is None:
        return {}
    graph, test = PairGraph.read(out.pair_rates), ExampleSet(out.examples("test"), spec)
    labels, made = test.column(LABEL), PairRateFeatures(spec, spec.pair_model)
    checkpoint.load(made, out.pair_rates / WEIGHTS)
    predicted = alone(made, test)
    scores = {name: load_array(out.model(name) / TEST_LOGITS) for name in models}
    found = {}
    for pair, field in enumerate(spec.pair_rates()):
        seen = of_rows(graph, pair, test)
        every = {"statistic": predicted[:, pair], **scores}
        found[field.name] = {name: auc_by_bucket(seen, labels, logits) for name, logits in every.items()}
    return found


@torch.inference_mode()
def alone(made: PairRateFeatures, examples: ExampleSet) -> np.ndarray:
    """[N, pairs] predicted logits of the rows' pairs, standardised."""
    inputs = [made(batch.request.ids, batch.candidate.ids)[:, :: made.scorer.channels]
              for batch in examples.batches(65_536)]
    return torch.cat(inputs).numpy()
