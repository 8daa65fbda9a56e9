"""An encoder of values and a head per pair of fields: what pre-training fits."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from contracts.config.training import PairRates
from models.layers.pair_rate_features import build_head
from models.pair_rates.factorisation import Factorisation, TwoTowerPairs
from models.pair_rates.graph import PairGraph
from models.pair_rates.pcf_gnn import PcfGnn


class PairNetwork(nn.Module):
    """Heads start at the rate of their pair as a whole."""

    def __init__(self, encoder: nn.Module, graph: PairGraph) -> None:
        super().__init__()
        self.encoder = encoder
        self.kind, self.width = str(encoder.head), int(encoder.width)  # type: ignore[arg-type]
        self.heads = nn.ModuleList(build_head(self.kind, self.width) for _ in graph.pairs)
        for head, prior in zip(self.heads, graph.priors, strict=False):
            nn.init.constant_(head.bias, float(torch.logit(prior)))  # type: ignore[arg-type]

    def forward(self, graph: PairGraph, edges: Tensor, source: PairGraph, generator: torch.Generator) -> Tensor:
        """Logits [E] of the edges numbered `edges` in `source`, messages from `graph` (none of them from these edges).

        `graph` is `source` itself, or has none of these edges.
        """
        left, right = source.edges.left[edges].long(), source.edges.right[edges].long()
        rows, places = torch.unique(torch.cat([left, right]), return_inverse=True)
        excluded = edges.sort().values if graph is source else edges[:0]
        vectors = self.encoder(graph, rows, excluded, generator)
        lefts, rights = vectors[places[: len(edges)]], vectors[places[len(edges) :]]
        return self._logits(source.edges.relation[edges], lefts, rights)

    def _logits(self, relation: Tensor, left: Tensor, right: Tensor) -> Tensor:
        if len(self.heads) == 1:
            return self.heads[0](left, right)
        logits = left.new_zeros(len(relation))
        for number, head in enumerate(self.heads):
            own = torch.nonzero(relation == number).squeeze(1)
            logits = logits.index_copy(0, own, head(left[own], right[own]))
        return logits


def build(settings: PairRates, graph: PairGraph) -> PairNetwork:
    """Fresh weights come from torch's global generator: seed it first."""
    if settings.model in ("pcf_gnn", "posterior"):
        attention = settings.aggregation == "attention"
        encoder: nn.Module = PcfGnn(
            graph, settings.dim, settings.layers, settings.neighbours, attention, settings.smoothing
        )
    elif settings.model == "two_tower":
        encoder = TwoTowerPairs(graph, settings.dim)
    else:
        encoder = Factorisation(graph, settings.dim)
    return PairNetwork(encoder, graph)
