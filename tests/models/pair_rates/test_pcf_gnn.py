from __future__ import annotations

import numpy as np
import pytest
import torch

from models.pair_rates.graph import PairGraph
from models.pair_rates.pcf_gnn import PcfGnn

NONE = torch.empty(0, dtype=torch.int64)


def encoder(graph, layers, attention=False):
    torch.manual_seed(0)
    return PcfGnn(graph, dim=4, layers=layers, neighbours=1000, attention=attention, shrink=2.0).eval()


def by_hand(network, graph):
    """The encoder's formulas, node by node, with every neighbour."""
    edges = graph.edges
    owner = graph.slot_of.tolist()
    h = [network.slots[owner[row]] + graph.seen[row] * network.values[row] for row in range(graph.nodes)]
    for layer in network.layers:
        after = []
        for row in range(graph.nodes):
            parts = [h[row]]
            for one in graph.incoming[owner[row]]:
                ends, others = (edges.right, edges.left) if one.from_left else (edges.left, edges.right)
                own = [e for e in range(len(edges.relation)) if edges.relation[e] == one.relation and ends[e] == row]
                n = sum(float(edges.exposure[e]) for e in own)
                mean = sum((float(edges.exposure[e]) / n * h[int(others[e])] for e in own), torch.zeros(4))
                q = float(graph.priors[one.relation])
                clicks = sum(float(edges.clicks[e]) for e in own)
                lift = np.log((clicks / q + 2) / (n + 2)) if one.relation < len(graph.pairs) else 0.0
                parts += [mean, torch.tensor([lift, np.log1p(n) / 10], dtype=torch.float32)]
            mixed = layer.combine[owner[row]](torch.cat(parts))
            after.append(mixed if layer.last else torch.relu(mixed))
        h = after
    return torch.stack(h)


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_vectors_are_those_of_the_formulas(pair_graph, layers):
    network = encoder(pair_graph, layers)
    with torch.no_grad():
        torch.testing.assert_close(network.all_vectors(pair_graph), by_hand(network, pair_graph), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("attention", [False, True])
def test_a_batch_of_rows_gets_the_vectors_of_the_whole(pair_graph, attention):
    network = encoder(pair_graph, 2, attention)
    rows = torch.tensor([5, 17, 3, 30])
    with torch.no_grad():
        some = network(pair_graph, rows, NONE, torch.Generator())
        torch.testing.assert_close(some, network.all_vectors(pair_graph)[rows], atol=1e-5, rtol=1e-4)


def test_attention_weighs_what_mean_does_not(pair_graph):
    plain, attending = (encoder(pair_graph, 1, attention).all_vectors(pair_graph) for attention in (False, True))
    assert not torch.allclose(plain, attending)


@pytest.mark.parametrize("attention", [False, True])
def test_what_an_excluded_edge_says_changes_nothing(pair_graph, attention):
    """The label of a target must not come back through the messages: neither its clicks nor that it is there."""
    edges = pair_graph.edges
    gone = torch.tensor([2, 7])
    other = edges._replace(clicks=edges.clicks.clone(), exposure=edges.exposure.clone())
    other.clicks[gone], other.exposure[gone] = 33.0, 77.0
    network = encoder(pair_graph, 2, attention)
    rows = torch.cat([edges.left[gone], edges.right[gone]]).long().unique()
    with torch.no_grad():
        same = PairGraph(pair_graph.slots, pair_graph.relations, other)
        same.__dict__["priors"] = pair_graph.priors  # the rate of the whole relation is no label of the pair
        before, after = (network(graph, rows, gone, torch.Generator()) for graph in (pair_graph, same))
        torch.testing.assert_close(before, after)
        told = network(same, rows, NONE, torch.Generator())
    assert not torch.allclose(told, after)


def test_values_never_seen_have_one_vector_a_slot(pair_graph):
    vectors = encoder(pair_graph, 2).all_vectors(pair_graph)
    city, brand = pair_graph.starts["city"], pair_graph.starts["brand"]
    torch.testing.assert_close(vectors[city], vectors[city + 1])
    torch.testing.assert_close(vectors[brand], vectors[brand + 1])
    assert not torch.allclose(vectors[city], vectors[city + 2])


def test_gradients_reach_values_through_two_rounds(pair_graph):
    network = encoder(pair_graph, 2).train()
    network(pair_graph, torch.tensor([4]), NONE, torch.Generator()).sum().backward()
    reached = network.values.grad.coalesce().indices()[0]
    tiers = range(pair_graph.starts["tier"], pair_graph.nodes)
    assert len(reached) > 15
    assert any(row in reached for row in tiers)
