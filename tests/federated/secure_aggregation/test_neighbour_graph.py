from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated.secure_aggregation.neighbour_graph import (
    SCRYPT_BLOCK,
    SCRYPT_COST,
    graph_seed,
    ring,
    threshold,
    uncovered_odds,
)


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


def test_the_order_follows_from_everything_that_was_announced():
    assert graph_seed(b"round 1, announced a") == graph_seed(b"round 1, announced a")
    assert graph_seed(b"round 1, announced a") != graph_seed(b"round 1, announced b")


def test_a_try_costs_the_memory_that_the_documentation_says():
    """scrypt fills 128 n r bytes (RFC 7914)."""
    assert 128 * SCRYPT_COST * SCRYPT_BLOCK == 16 * 2**20


def test_odds_of_a_league_are_those_of_drawn_orders():
    """Against 4,000 drawn orders of 30 clients, 12 in league, of whom 4 are enough of 6 neighbours."""
    league, hit, hit_any = set(range(12)), 0, 0
    for seed in range(4000):
        graph = ring(range(30), 6, seed)
        uncovered = [len(league & set(graph[client])) >= threshold(6) for client in range(12, 30)]
        hit, hit_any = hit + uncovered[-1], hit_any + any(uncovered)
    one, anybody = uncovered_odds(30, 6, 12)
    assert hit / 4000 == pytest.approx(one, rel=0.15)
    assert hit_any / 4000 <= anybody


@pytest.mark.parametrize(("neighbours", "in_league", "one_in", "any_one_in"), [
    (40, 100, 2.7e11, 3.0e8), (40, 200, 3.3e5, 420), (40, 300, 500, 1), (60, 100, 8.0e16, 8.8e13),
    (100, 200, 5.7e12, 7.1e9)])
def test_odds_are_those_that_the_documentation_gives(neighbours, in_league, one_in, any_one_in):
    """docs/concepts/federated.md: of 1,000 clients a round."""
    one, anybody = uncovered_odds(1000, neighbours, in_league)
    assert 1 / one == pytest.approx(one_in, rel=0.02)
    assert 1 / anybody == pytest.approx(any_one_in, rel=0.02)
