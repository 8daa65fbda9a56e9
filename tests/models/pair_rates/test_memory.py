from __future__ import annotations

import torch

from contracts.config.training import PairRates
from contracts.features.feature_spec import FeatureSpec
from models.pair_rates import network as pair_network
from models.pair_rates import weights as pair_weights
from models.pair_rates.graph import PairGraph
from models.pair_rates.memory import memory


def test_bytes_by_hand(pair_graph: PairGraph, pair_spec: FeatureSpec) -> None:
    torch.manual_seed(0)
    network = pair_network.build(PairRates(model="factorisation", dim=4), pair_graph)
    made = pair_weights.from_network(network, pair_graph, pair_spec)
    found = memory(made, pair_graph)
    cities, brands, width = 12 + 2, 15 + 2, 4 + 1
    assert found["table"] == 12 * len(pair_graph.targets)
    assert found["dense"] == 4 * cities * brands
    vectors, rest = 4 * (cities + brands) * width, found["own"] - 4 * (cities + brands) * width
    assert vectors <= found["own"]
    assert 0 <= rest < 200  # a head and its standardisation
