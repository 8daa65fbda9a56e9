"""What pair rates are worth, and what they cost.

Worth: the AUC of test rows by how often the statistics window saw their pair: 0, 1-10, 11-100, more. Cost, in bytes:

    own       what the served pair rates hold: node vectors, shared by all pairs a slot takes part in, and the heads
    table     observed pairs x 12 bytes (code of the pair and its logit)
    dense     product of the two vocabularies x 4 bytes, summed over pairs
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from contracts.artifacts import LABEL, TEST_LOGITS, WEIGHTS, Artifacts
from contracts.bundle.bundle import load_array
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries.pair_rates import PairRateBytes
from contracts.summaries.train import BucketFigures, CoOccurrence
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet
from models.layers.pair_rate_features import PairRateFeatures
from models.pair_rates.graph import PairGraph
from models.training import checkpoint

BUCKETS = {"0": (0, 0), "1-10": (1, 10), "11-100": (11, 100), ">100": (101, np.inf)}
TABLE_ENTRY, NUMBER = 12, 4  # bytes


def seen_together(graph: PairGraph, pair: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Impressions in the window of each pair of ids local to their slots, [...], [...] (broadcast) -> [...]."""
    relation = graph.relations[pair]
    own = (graph.edges.relation == pair).numpy()
    size = graph.slots[relation.right]
    lefts = graph.edges.left.numpy()[own].astype(np.int64) - graph.starts[relation.left]
    codes = lefts * size + graph.edges.right.numpy()[own] - graph.starts[relation.right]
    order = np.argsort(codes)
    codes, shown = codes[order], graph.edges.impressions.numpy()[own][order]
    wanted = left.astype(np.int64) * size + right
    if not len(codes):
        return np.zeros(wanted.shape)
    place = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return np.where(codes[place] == wanted, shown[place], 0)


def of_rows(graph: PairGraph, pair: int, examples: ExampleSet) -> np.ndarray:
    """Impressions of each row's pair [N]; of lists of values, the most of any."""
    left, right = (examples.column(slot).reshape(examples.rows, -1) for slot in graph.relations[pair][:2])
    return seen_together(graph, pair, left[:, :, None], right[:, None, :]).max(axis=(1, 2))


def auc_by_bucket(seen: np.ndarray, labels: np.ndarray, logits: np.ndarray) -> dict[str, BucketFigures]:
    """Per bucket; `seen`, `labels`, `logits` [N]."""
    found = {}
    for name, (least, most) in BUCKETS.items():
        own = (seen >= least) & (seen <= most)
        positives = int(labels[own].sum())
        both = 0 < positives < own.sum()
        found[name] = BucketFigures(
            rows=int(own.sum()), positives=positives, auc=auc(labels[own], logits[own]) if both else None)
    return found


def co_occurrence(out: Artifacts, spec: FeatureSpec, models: Iterable[str]) -> CoOccurrence:
    """{pair rate: {model: figures by bucket}} from the models' test logits; "statistic" is the predicted rate alone."""
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


def memory(made: PairRateFeatures, graph: PairGraph) -> PairRateBytes:
    """`own` are the bytes of what `made` really holds."""
    pairs = graph.relations[: len(graph.pairs)]
    sizes = [(graph.slots[pair.left], graph.slots[pair.right]) for pair in pairs]
    return PairRateBytes(
        own=sum(tensor.numel() * tensor.element_size() for tensor in made.state_dict().values()),
        table=TABLE_ENTRY * len(graph.targets), dense=NUMBER * sum(left * right for left, right in sizes),
    )
