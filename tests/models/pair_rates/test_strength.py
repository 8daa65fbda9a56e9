"""How much a prior is worth: against a distribution that adds up to 1, and recovered from drawn counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from contracts.config.training import PairRates
from contracts.features.feature_spec import FIRST_ID
from models.pair_rates import network as pair_network
from models.pair_rates.graph import PairGraph
from models.pair_rates.strength import GRID, beta_binomial, strengths


def test_the_likelihood_of_all_outcomes_adds_up_to_one() -> None:
    clicks, shown = torch.arange(8.0).double(), torch.full((8,), 7.0).double()
    found = beta_binomial(clicks, shown, torch.full((8,), 0.3).double(), torch.tensor([5.0]).double())[:, 0]
    choose = torch.lgamma(shown + 1) - torch.lgamma(clicks + 1) - torch.lgamma(shown - clicks + 1)
    assert float((found + choose).exp().sum()) == pytest.approx(1.0)


@pytest.mark.parametrize("true", [3.0, 50.0])
def test_the_likeliest_strength_is_that_of_the_draws(true: float) -> None:
    random = np.random.default_rng(1)
    rates = random.uniform(0.05, 0.5, 3000)
    shown = random.integers(5, 200, 3000)
    clicks = random.binomial(shown, random.beta(true * rates, true * (1 - rates)))
    counts, outcomes, given = (torch.from_numpy(part).double() for part in (clicks, shown, rates))
    found = beta_binomial(counts, outcomes, given, GRID)
    assert float(GRID[found.sum(0).argmax()]) == pytest.approx(true, rel=0.3)


class Told(nn.Module):
    """Says the same logit of a pair whatever the graph."""

    def __init__(self, rates: np.ndarray) -> None:
        super().__init__()
        self.logits = torch.logit(torch.from_numpy(rates).float())

    def forward(self, graph: PairGraph, edges: Tensor, source: PairGraph, generator: torch.Generator) -> Tensor:
        left, right = (ends[edges] - source.starts[slot] - FIRST_ID
                       for ends, slot in ((source.edges.left, "city"), (source.edges.right, "brand")))
        return self.logits[left.long(), right.long()]


def test_who_infers_well_is_worth_more_than_who_says_the_same_of_all(
    pair_graph: PairGraph, pair_rates: np.ndarray
) -> None:
    knows, says_the_same = (float(strengths(Told(rates), pair_graph, 1)[0])
                            for rates in (pair_rates, np.full_like(pair_rates, pair_rates.mean())))
    assert says_the_same < 20 < 100 < knows


def test_every_pair_has_a_strength_of_its_own(pair_graph: PairGraph) -> None:
    network = pair_network.build(PairRates(dim=4, model="posterior"), pair_graph).eval()
    found = strengths(network, pair_graph, 1)
    assert found.shape == (len(pair_graph.pairs),)
    assert ((GRID.min() <= found) & (found <= GRID.max())).all()
