"""What pre-training leaves for the rankers: PairRateFeatures with weights, standardised, and their part of the spec.

    logit of a smoothed rate (clicks + s q) / (n + s)     for the table; q the relation's own rate, s the smoothing;
                                                          q the graph's rate of the pair where it corrects the counts,
                                                          n then the clicks where exposure is less
    r_u = logit of u's own smoothed rate - b               b = logit of q
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from contracts.artifacts import WEIGHTS, Artifacts
from contracts.bundle import bundle
from contracts.config.training import PairRates
from contracts.errors import DataError
from contracts.features.feature_spec import FeatureField, FeatureSpec, PairModel
from contracts.summaries.pair_rates import PairRatesSummary
from models.layers.embedding import INITIAL_STD, FusedEmbedding
from models.layers.pair_rate_features import CountScorer, PairRateFeatures, TableScorer, VectorScorer
from models.pair_rates.graph import Edges, PairGraph
from models.training import checkpoint

if TYPE_CHECKING:  # a ranker needs no graph library
    from models.pair_rates.network import PairNetwork

LOOK_UPS = 2.0  # the serving cost of a pair


def without_pair_rates(spec: FeatureSpec) -> FeatureSpec:
    """The spec as before any pair rate was named."""
    return _changed(spec, [field for field in spec.fields if field.kind != "statistic"], None)


def with_pair_rates(spec: FeatureSpec, pairs: Sequence[tuple[str, str]], model: PairModel) -> FeatureSpec:
    """The spec plus one field `LEFT_x_RIGHT_rate` a pair; whatever pair rates it had give way."""
    plain = [field for field in spec.fields if field.kind != "statistic"]
    fields = [
        FeatureField(name=f"{left}_x_{right}_rate", kind="statistic", side="cross", parts=(left, right), cost=LOOK_UPS)
        for left, right in pairs
    ]
    return _changed(spec, [*plain, *fields], model)


def name_in_spec(out: Artifacts, found: PairRatesSummary) -> None:
    """Writes the feature spec of OUT with the pair rates that were found, where they are read, and with no others."""
    spec = FeatureSpec.read(out.encoding)
    read = found.pair_model if found.are_read else None
    (with_pair_rates(spec, found.pairs, read) if read else without_pair_rates(spec)).write(out.encoding)


def _changed(spec: FeatureSpec, fields: Sequence[FeatureField], model: PairModel | None) -> FeatureSpec:
    """A new object: a copy would carry along what the old one has cached."""
    kept = {name: getattr(spec, name) for name in FeatureSpec.model_fields}
    return FeatureSpec(**{**kept, "fields": tuple(fields), "pair_model": model})


def pairs_of(graph: PairGraph) -> list[tuple[str, str]]:
    """(left slot, right slot) of each pair whose rate is learned, in the order of the heads."""
    return [(graph.relations[number].left, graph.relations[number].right) for number in graph.pairs]


def from_network(
    network: PairNetwork, graph: PairGraph, spec: FeatureSpec, strength: Tensor | None = None
) -> PairRateFeatures:
    """The encoder is dropped: its vectors of the values of the pairs' slots stay, and the heads. With a `strength` [P]
    what was counted of a pair corrects the head's rate, which counts as so many impressions."""
    entries = 0 if strength is None else len(graph.targets)
    model = PairModel(head=network.kind, dim=network.width, entries=entries)  # type: ignore[arg-type]
    made = PairRateFeatures(with_pair_rates(spec, pairs_of(graph), model), model)
    assert isinstance(made.scorer, VectorScorer)
    with torch.no_grad():
        vectors = network.encoder.all_vectors(graph)  # type: ignore[operator]
        made.scorer.vectors.copy_(torch.cat([_of_slot(vectors, graph, slot) for slot in made.starts]))
    made.scorer.heads.load_state_dict(network.heads.state_dict())
    if strength is not None:
        _count(made, graph, strength)
    return standardised(made, graph)


@torch.no_grad()
def _count(made: PairRateFeatures, graph: PairGraph, strength: Tensor) -> None:
    scorer, edges = made.scorer, graph.edges.take(graph.targets)
    assert isinstance(scorer, CountScorer)
    codes = _codes(made, graph, edges, scorer.nodes)
    order, shown = torch.argsort(codes), torch.maximum(edges.exposure, edges.clicks)
    scorer.strength.copy_(strength)
    for kept, values in ((scorer.codes, codes), (scorer.clicks, edges.clicks), (scorer.exposure, shown)):
        kept.copy_(values[order])


def _codes(made: PairRateFeatures, graph: PairGraph, edges: Edges, nodes: int) -> Tensor:
    """[E] as a table is sorted by."""
    left, right = (_rows(made, graph, edges, side) for side in (0, 1))
    return (edges.relation.long() * nodes + left) * nodes + right


def _of_slot(values: Tensor, graph: PairGraph, slot: str) -> Tensor:
    return values[graph.starts[slot] : graph.starts[slot] + graph.slots[slot]]


def table(graph: PairGraph, spec: FeatureSpec, settings: PairRates) -> PairRateFeatures:
    """The look-up table of the observed pairs with smoothed rates."""
    edges = graph.edges.take(graph.targets)
    model = PairModel(head="table", dim=1, entries=len(edges.relation))
    made = PairRateFeatures(with_pair_rates(spec, pairs_of(graph), model), model)
    scorer = made.scorer
    assert isinstance(scorer, TableScorer)
    relation, shown = edges.relation.long(), edges.exposure
    left, right = (_rows(made, graph, edges, side) for side in (0, 1))
    scorer.base.copy_(torch.logit(graph.priors[: len(graph.pairs)]))
    logits = _smoothed_logit(edges.clicks, shown, graph.priors[relation], settings.smoothing)
    codes = _codes(made, graph, edges, scorer.nodes)
    order = torch.argsort(codes)
    scorer.codes.copy_(codes[order])
    scorer.logits.copy_(logits[order])
    for rows in (left, right):
        place = relation * scorer.nodes + rows
        sums = torch.zeros(scorer.own.numel(), 2).index_add_(0, place, torch.stack([edges.clicks, shown], dim=1))
        prior = graph.priors[: len(graph.pairs)].repeat_interleave(scorer.nodes)
        own = _smoothed_logit(sums[:, 0], sums[:, 1], prior, settings.smoothing) - torch.logit(prior)
        scorer.own += torch.where(sums[:, 1] > 0, own, 0.0).view_as(scorer.own)
    return standardised(made, graph)


def _rows(made: PairRateFeatures, graph: PairGraph, edges: Edges, side: int) -> Tensor:
    """Rows of the edges' values in the order of `made`, int64 [E]."""
    rows, relation = (edges.left, edges.right)[side].long(), edges.relation.long()
    slots = [pair[side] for pair in pairs_of(graph)]
    shift = torch.tensor([made.starts[slot] - graph.starts[slot] for slot in slots])
    return rows + shift[relation]


def _smoothed_logit(clicks: Tensor, shown: Tensor, prior: Tensor, smoothing: float) -> Tensor:
    """Without smoothing, rates of 0 and 1 are kept half a click away."""
    rate = (clicks + smoothing * prior) / (shown + smoothing).clamp(min=1e-9)
    return torch.logit(torch.minimum(torch.maximum(rate, 0.5 / (shown + 1)), 1 - 0.5 / (shown + 1)))


@torch.no_grad()
def standardised(made: PairRateFeatures, graph: PairGraph) -> PairRateFeatures:
    """Sets mean and deviation of the logits over the window's exposure; flags stay as they are."""
    channels = made.scorer.channels
    edges = graph.edges.take(graph.targets)
    left, right = (_rows(made, graph, edges, side) for side in (0, 1))
    for pair in range(len(made.parts)):
        own = edges.relation == pair
        logits = made.scorer(pair, left[own], right[own])[..., 0].double()
        weight = edges.exposure[own].double() / edges.exposure[own].sum()
        mean = (weight * logits).sum()
        made.mean[pair * channels] = mean
        made.std[pair * channels] = (weight * (logits - mean).square()).sum().sqrt().clamp(min=1e-3)
    return made


def publish(made: PairRateFeatures, spec: FeatureSpec, pairs: Sequence[tuple[str, str]], settings: PairRates,
            folder: Path) -> FeatureSpec:
    """Writes the weights and returns the spec that names them."""
    checkpoint.save(made, folder / WEIGHTS)
    chosen = {
        "fine_tune": settings.fine_tune, "initialise_embeddings": settings.initialise_embeddings,
        "digest": bundle.digest(folder / WEIGHTS),
    }
    return with_pair_rates(spec, pairs, made.model.model_copy(update=chosen))


def load_into(network: torch.nn.Module, spec: FeatureSpec, folder: Path) -> None:
    """Gives a fresh ranker the pre-trained pair rates that its spec names; does nothing where it names none.

    Raises DataError when the folder holds others.
    """
    embedding = getattr(network, "embedding", None)
    if spec.pair_model is None or not isinstance(embedding, FusedEmbedding) or embedding.pair_rates is None:
        return
    load_pair_rates(embedding.pair_rates, spec.pair_model, folder)
    linear = embedding.dim == 1
    if spec.pair_model.initialise_embeddings and isinstance(embedding.pair_rates.scorer, VectorScorer) and not linear:
        _initialise(embedding, embedding.pair_rates, embedding.pair_rates.scorer.vectors.detach())


def load_pair_rates(pair_rates: PairRateFeatures, named: PairModel, folder: Path) -> None:
    """Raises DataError when the folder holds others than those named."""
    path = folder / WEIGHTS
    if not path.exists() or bundle.digest(path) != named.digest:
        raise DataError(f"{path} is not what the feature spec was made with; run `sluice pretrain` again")
    checkpoint.load(pair_rates, path)


@torch.no_grad()
def _initialise(embedding: FusedEmbedding, pair_rates: PairRateFeatures, vectors: Tensor) -> None:
    """Embeddings of the pairs' values start at their vectors, at the deviation that embeddings start with.

    A network whose embeddings are wider (by a linear weight, which is last) keeps the rest as it is.
    """
    scaled = (vectors - vectors.mean(0)) / vectors.std(0).clamp(min=1e-6) * INITIAL_STD
    for slot, in_candidate in {part for pair in pair_rates.parts for part in pair}:
        reader = embedding.candidate if in_candidate else embedding.request
        first = int(reader.offsets[reader.places[slot.name]]) + 1
        start = pair_rates.starts[slot.name]
        embedding.put(first, scaled[start + 1 : start + slot.size])
