from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from contracts.features.pair_graph import Relation
from models.pair_rates.graph import PairGraph
from models.pair_rates.neighbour_sampling import sample

NONE = torch.empty(0, dtype=torch.int64)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def edges_into(graph, rows, neighbours, excluded=NONE, seed=0):
    """{row: edge numbers that send to it}"""
    found: dict[int, list[int]] = {int(row): [] for row in rows}
    for one in sample(graph, rows, neighbours, excluded, generator(seed)):
        for bucket, edge, source in zip(one.bucket, one.edge, one.source, strict=True):
            row = int(rows[one.nodes[bucket // one.relations]])
            found[row].append(int(edge))
            assert {row, int(source)} == {int(graph.edges.left[edge]), int(graph.edges.right[edge])}
    return found


def test_few_neighbours_are_all_there(pair_graph):
    rows = torch.arange(pair_graph.nodes)
    found = edges_into(pair_graph, rows, neighbours=1000)
    for row in rows.tolist():
        touching = (pair_graph.edges.left == row) | (pair_graph.edges.right == row)
        assert sorted(found[row]) == torch.nonzero(touching).squeeze(1).tolist()


def test_an_excluded_edge_carries_no_message_either_way(pair_graph):
    rows, gone = torch.arange(pair_graph.nodes), torch.tensor([1, 4, 50])
    everywhere = {edge for edges in edges_into(pair_graph, rows, 1000, gone).values() for edge in edges}
    assert everywhere == set(range(len(pair_graph.edges.relation))) - set(gone.tolist())


@pytest.fixture(scope="module")
def hub():
    """One value of slot a with 100 neighbours."""
    hundred = np.arange(100)
    return PairGraph.of({"a": 1, "b": 100}, [Relation("a", "b", "pair")], hundred * 0, hundred * 0, hundred,
                        hundred + 1, hundred * 0, hundred + 1)


def test_a_hub_gives_as_many_as_asked_all_different_and_each_equally_often(hub):
    counts: Counter[int] = Counter()
    for seed in range(600):
        drawn = edges_into(hub, torch.tensor([0]), neighbours=15, seed=seed)[0]
        assert len(set(drawn)) == len(drawn) == 15
        counts.update(drawn)
    expected = 600 * 15 / 100
    assert all(abs(counts[edge] - expected) < 5 * expected**0.5 for edge in range(100))


def test_one_seed_one_sample(hub):
    assert edges_into(hub, torch.tensor([0]), 15, seed=3) == edges_into(hub, torch.tensor([0]), 15, seed=3)
