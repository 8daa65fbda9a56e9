from __future__ import annotations

import pytest
import torch
from torch import nn

from models.pair_rates.factorisation import Factorisation, TwoTowerPairs
from models.pair_rates.graph import PairGraph

DIM = 3


@pytest.fixture(params=[Factorisation, TwoTowerPairs])
def encoder(request: pytest.FixtureRequest, pair_graph: PairGraph) -> nn.Module:
    torch.manual_seed(0)
    made: nn.Module = request.param(pair_graph, DIM)
    return made


def vectors(encoder: nn.Module, graph: PairGraph, rows: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = encoder(graph, rows, rows[:0], torch.Generator())
    return found


def test_some_rows_get_the_vectors_that_all_rows_get(encoder: nn.Module, pair_graph: PairGraph) -> None:
    rows = torch.tensor([17, 3, 20, 9])
    whole = encoder.all_vectors(pair_graph)  # type: ignore[operator]
    assert whole.shape == (pair_graph.nodes, DIM + 1)
    torch.testing.assert_close(vectors(encoder, pair_graph, rows), whole[rows])


def test_a_value_never_seen_has_what_its_slot_has(encoder: nn.Module, pair_graph: PairGraph) -> None:
    unseen = torch.nonzero(~pair_graph.seen).squeeze(1)
    found = vectors(encoder, pair_graph, unseen)
    for slot in range(len(pair_graph.slots)):
        same = found[pair_graph.slot_of[unseen] == slot]
        torch.testing.assert_close(same, same[:1].expand_as(same))
    if isinstance(encoder, Factorisation):
        assert not found.any()
    else:
        assert (found.abs().sum(dim=1) > 0).all()


def test_only_the_values_asked_for_get_a_gradient(encoder: nn.Module, pair_graph: PairGraph) -> None:
    seen = torch.nonzero(pair_graph.seen).squeeze(1)[:4]
    vectors(encoder, pair_graph, seen).sum().backward()
    values = encoder.values
    assert isinstance(values, nn.Parameter)
    assert values.grad is not None
    touched = values.grad.coalesce().indices().squeeze(0)
    assert set(touched.tolist()) == set(seen.tolist())
