from __future__ import annotations

import torch

from models.networks.din import TargetAttention


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
