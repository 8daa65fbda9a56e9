"""In several processes: tests/models/distributed/test_sharded_table.py, beside the rankers."""

from __future__ import annotations

import torch

from models.distributed.shared_candidates import SharedCandidates
from models.distributed.world import ALONE


def test_one_process_gets_its_own_back(group_of_one: None) -> None:
    vectors, numbers = torch.randn(4, 3, requires_grad=True), torch.arange(8).view(4, 2)
    found = SharedCandidates(ALONE)(vectors, numbers)
    assert torch.equal(found.vectors, vectors)
    assert torch.equal(found.numbers, numbers)
    assert found.first == 0
    weight = torch.randn(4, 3)
    (found.vectors * weight).sum().backward()
    assert vectors.grad is not None
    assert torch.equal(vectors.grad, weight)
    nothing = SharedCandidates(ALONE)(vectors[:0], numbers[:0])
    assert nothing.vectors.shape == (0, 3)
