"""In a group of one process: what more of them do is in test_sharded_table.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from contracts.features.feature_spec import FeatureSpec
from models.distributed import exchange, gradient_buckets
from models.distributed.exchange import Collectives
from models.distributed.gradient_sum import GradientSum
from models.distributed.sharded_table import ShardedTable
from models.distributed.world import ALONE, World
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


class Recording(Collectives):
    """`calls` in their order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def dealt(self, *given: Any) -> Any:
        self.calls.append("rows")
        return super().dealt(*given)

    def add(self, *given: Any) -> Any:
        self.calls.append("bucket")
        return super().add(*given)


@pytest.mark.usefixtures("group_of_one")
@pytest.mark.parametrize("terms", [4, 0])
def test_one_without_terms_exchanges_in_the_order_of_those_with_some(
    terms: int, spec: FeatureSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no backward pass, in which buckets leave before the rows do."""
    monkeypatch.setattr(gradient_buckets, "BUCKET", 2)
    embedding, dense = FusedEmbedding(spec, 4), [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
    summing = GradientSum(dense, [(ShardedTable(embedding, ALONE), summed_rows)], World(0, 2))
    (vectors,) = embedding.vectors(torch.tensor([[3, 7]]))
    recording = Recording()
    loss = vectors.sum() * sum(parameter.sum() for parameter in dense)
    exchange.use(recording)
    try:
        if terms:
            loss.backward()
        summing(loss, terms)
    finally:
        exchange.use(Collectives())
    assert recording.calls == ["bucket", "bucket", "rows", "bucket"]


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
