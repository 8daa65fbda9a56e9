"""How many impressions the graph's rate of a pair is worth, where the pair was counted itself.

    clicks ~ beta-binomial(n, s g, s (1 - g))        of pairs that were held out; g their rate by the graph without them

The s of largest likelihood, one per relation: small where pairs differ from what the graph infers, large where the rest
is drawing error. It makes g the prior of the count, (clicks + s g) / (n + s): the graph where nothing was counted, the
count where much was.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.pair_rates.graph import PairGraph
from models.pair_rates.pretraining import EVALUATION_EDGES, hold_out

GRID = torch.logspace(0, 4, 41, dtype=torch.float64)  # impressions
LEAST = 20  # held-out pairs of a relation; with fewer it takes the s of all
NEAR = 1e-6  # of rates, from 0 and 1


@torch.no_grad()
def strengths(network: nn.Module, graph: PairGraph, seed: int) -> Tensor:
    """[P] of the graph's pairs, by what a PairNetwork says of them; `seed` is that of the pre-training, which says what
    was held out."""
    _, held_out = hold_out(graph, seed)
    if not len(held_out):
        return torch.ones(len(graph.pairs))
    without, generator = graph.without(held_out), torch.Generator().manual_seed(seed)
    parts = [network(without, edges, graph, generator) for edges in held_out.split(EVALUATION_EDGES)]
    rates = torch.sigmoid(torch.cat(parts).double()).clamp(NEAR, 1 - NEAR)
    edges = graph.edges.take(held_out)
    clicks = edges.clicks.double()
    likelihood = beta_binomial(clicks, torch.maximum(edges.exposure.double(), clicks), rates, GRID)
    own = [edges.relation == number for number in graph.pairs]
    chosen = [mask if mask.sum() >= LEAST else torch.ones_like(mask) for mask in own]
    return torch.stack([GRID[likelihood[mask].sum(0).argmax()] for mask in chosen]).float()


def beta_binomial(clicks: Tensor, shown: Tensor, rates: Tensor, strength: Tensor) -> Tensor:
    """Log likelihood [E, S] of clicks [E] of `shown` by rates [E] that are worth strength [S], less what s leaves as it
    is."""
    first, second = rates[:, None] * strength, (1.0 - rates)[:, None] * strength
    return (_rising(first, clicks[:, None]) + _rising(second, (shown - clicks)[:, None])
            - _rising(strength.expand_as(first), shown[:, None]))


def _rising(start: Tensor, count: Tensor) -> Tensor:
    """ln of start (start + 1) ... (start + count - 1)."""
    return torch.lgamma(start + count) - torch.lgamma(start)
