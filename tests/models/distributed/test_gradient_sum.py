"""In a group of one process: what more of them do is in test_sharded_table.py."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from contracts.features.feature_spec import FeatureSpec
from models.distributed.gradient_sum import GradientSum
from models.distributed.sharded_table import ShardedTable
from models.distributed.world import ALONE
from models.layers.embedding import FusedEmbedding
from models.optimisation.row_adam import summed_rows


@pytest.mark.usefixtures("group_of_one")
def test_sums_become_means_over_the_terms_and_wishes_are_heard() -> None:
    moved, still = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2))
    moved.grad = torch.tensor([2.0, 4.0, 6.0])
    found = GradientSum([moved, still], [], ALONE)(torch.tensor(5.0), 4, 1.0)
    assert (found.loss, found.terms, found.wishes) == (5.0, 4, 1.0)
    assert moved.grad.tolist() == [0.5, 1.0, 1.5]
    assert still.grad is None


@pytest.mark.usefixtures("group_of_one")
def test_a_sharded_table_looks_up_and_learns_as_a_plain_one(spec: FeatureSpec) -> None:
    torch.manual_seed(0)
    embedding = FusedEmbedding(spec, 4)
    plain = torch.nn.Parameter(embedding.weight.detach().clone())
    table = ShardedTable(embedding, ALONE)
    rows, upstream = torch.tensor([[3, 0, 7], [7, 3, 9]]), torch.randn(2, 3, 4)
    (vectors,) = embedding.vectors(rows)
    torch.testing.assert_close(vectors, F.embedding(rows, plain))
    vectors.backward(upstream)
    F.embedding(rows, plain, padding_idx=0).backward(upstream)
    found = summed_rows(*table.gradient())
    assert plain.grad is not None
    torch.testing.assert_close(torch.zeros_like(plain).index_add_(0, found.rows, found.values), plain.grad)
    assert len(table.gradient()[0]) == 0
    table.restore()
    torch.testing.assert_close(embedding.weight, plain)
    assert embedding.look_up is None
