from __future__ import annotations

import pytest
import torch

from contracts.config.training import PairRates
from models.pair_rates import network as pair_network
from models.pair_rates.graph import PairGraph

MODELS = ("pcf_gnn", "factorisation", "two_tower")


def logits(network: pair_network.PairNetwork, graph: PairGraph, edges: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = network(graph, edges, graph, torch.Generator().manual_seed(0))
    return found


def built(model: str, graph: PairGraph) -> pair_network.PairNetwork:
    torch.manual_seed(0)
    return pair_network.build(PairRates(model=model, dim=4, neighbours=200), graph).eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("model", MODELS)
def test_a_fresh_network_predicts_about_the_rate_of_the_pair_as_a_whole(model: str, pair_graph: PairGraph) -> None:
    found = logits(built(model, pair_graph), pair_graph, pair_graph.targets)
    assert found.sigmoid().mean().item() == pytest.approx(pair_graph.priors[0].item(), abs=0.05)


@pytest.mark.parametrize("model", MODELS)
def test_the_order_of_the_edges_asked_for_is_the_order_of_the_answers(model: str, pair_graph: PairGraph) -> None:
    network, edges = built(model, pair_graph), pair_graph.targets[:20]
    order = torch.randperm(20, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(logits(network, pair_graph, edges[order]), logits(network, pair_graph, edges)[order],
                               atol=1e-5, rtol=1e-5)
