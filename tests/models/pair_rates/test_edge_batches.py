from __future__ import annotations

import pytest
import torch

from models.pair_rates.edge_batches import FEWEST, edge_batches, shares

RELATION = torch.tensor([0] * 1000 + [1] * 30 + [2] * 3)
EDGES = torch.arange(len(RELATION)) + 50


def drawn(seed: int = 0) -> list[torch.Tensor]:
    return edge_batches(EDGES, RELATION, 100, torch.Generator().manual_seed(seed))


def test_every_edge_is_drawn_and_every_relation_is_in_every_batch() -> None:
    found = drawn()
    assert set(torch.cat(found).tolist()) == set(EDGES.tolist())
    for batch in found:
        assert [int((RELATION[batch - 50] == kind).sum()) for kind in (1, 2)] == [FEWEST, 2]
    assert torch.cat(found).bincount(minlength=1083)[50:1050].tolist() == [1] * 1000


def test_another_generator_another_order() -> None:
    assert all(torch.equal(a, b) for a, b in zip(drawn(), drawn(), strict=True))
    assert not torch.equal(drawn()[0], drawn(1)[0])


def test_one_relation_is_shuffled_and_cut() -> None:
    found = edge_batches(EDGES[:250], RELATION[:250], 100, torch.Generator().manual_seed(0))
    assert [len(batch) for batch in found] == [100, 100, 50]
    assert sorted(torch.cat(found).tolist()) == EDGES[:250].tolist()


def test_relations_weigh_the_same_however_often_they_were_shown() -> None:
    found = shares(torch.tensor([1.0, 3.0, 5000.0, 1000.0]), torch.tensor([0, 0, 3, 3]))
    assert found.tolist() == pytest.approx([0.125, 0.375, 5 / 12, 1 / 12])
