from __future__ import annotations

import pytest
import torch

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.networks.din import Din, TargetAttention


def test_attention_equals_a_loop_over_the_history() -> None:
    attention = TargetAttention(4)
    query, keys = torch.randn(3, 4), torch.randn(3, 5, 4)
    present = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], dtype=torch.bool)
    for b in range(3):
        real = [keys[b, i] for i in range(5) if present[b, i]]
        weights = []
        for key in real:
            hidden = attention.query(query[b]) + attention.key(key) + attention.product(query[b] * key)
            weights.append(attention.score(torch.relu(hidden)).exp())
        expected = sum((w * k for w, k in zip(weights, real, strict=True)), torch.zeros(4)) / (1 + sum(weights))
        torch.testing.assert_close(attention(query, keys, present)[b], expected)


def test_the_difference_of_query_and_key_adds_no_function() -> None:
    """[q, k, q - k, q * k] with weights (a, b, c, d) is [q, k, q * k] with (a + c, b - c, d)."""
    a, b, c, d, q, k = torch.randn(6, 4)
    four = a @ q + b @ k + c @ (q - k) + d @ (q * k)
    torch.testing.assert_close((a + c) @ q + (b - c) @ k + d @ (q * k), four)


@pytest.mark.parametrize(("blocks", "reads_order"), [(0, False), (1, True)])
def test_only_with_blocks_the_order_of_a_history_counts(
    spec: FeatureSpec, batch: Batch, blocks: int, reads_order: bool
) -> None:
    torch.manual_seed(0)
    network = Din(spec, 4, (8,), 0.0, blocks).eval()
    for parameter in network.context.parameters():  # a block that is not trained adds nothing
        torch.nn.init.normal_(parameter)
    slot = next(slot for slot in spec.block_ids("request") if slot.sequence)
    turned = batch.request.ids.clone()
    history = torch.tensor([2, 3, 4], dtype=torch.int32)
    turned[:, slot.start:slot.start + slot.width] = 0
    straight = turned.clone()
    straight[:, slot.start:slot.start + 3], turned[:, slot.start:slot.start + 3] = history, history.flip(0)
    one, other = (network(FeatureBlock(ids, batch.request.dense), batch.candidate) for ids in (straight, turned))
    assert torch.allclose(one, other, atol=1e-7) != reads_order
