from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from federated.secure_aggregation.neighbour_graph import ring, threshold


@given(st.sets(st.integers(0, 10_000), min_size=2, max_size=60), st.integers(1, 20).map(lambda half: 2 * half))
def test_the_graph_is_symmetric_and_every_client_has_its_neighbours(clients, neighbours):
    graph = ring(list(clients), neighbours, seed=5)
    assert set(graph) == clients
    for client, peers in graph.items():
        assert client not in peers
        assert len(peers) == min(neighbours, len(clients) - 1)
        assert all(client in graph[peer] for peer in peers)


def test_the_order_changes_with_the_seed():
    assert ring(range(30), 4, 1) != ring(range(30), 4, 2)


def test_two_disjoint_halves_cannot_both_reach_the_threshold():
    assert all(2 * threshold(count) > count for count in range(1, 50))
