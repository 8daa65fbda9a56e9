from __future__ import annotations

import pytest
import torch

from models.layers import pair_head


@pytest.mark.parametrize("kind", ["dot", "mlp"])
def test_one_left_value_is_broadcast_over_many_right_ones(kind):
    torch.manual_seed(0)
    head = pair_head.build(kind, 5)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    left, right = torch.randn(1, 5), torch.randn(7, 5)
    one_by_one = torch.stack([head(left[0], row) for row in right])
    torch.testing.assert_close(head(left, right), one_by_one)


def test_dot_is_a_biased_factorisation():
    head = pair_head.DotHead(3)
    logit = head(torch.tensor([1.0, 2.0, 0.5]), torch.tensor([3.0, -1.0, 0.25]))
    assert logit.item() == pytest.approx(1 * 3 - 2 + 0.5 + 0.25)


def test_an_mlp_learns_what_is_not_bilinear():
    """XOR of the signs in one number each."""
    torch.manual_seed(0)
    left, right = torch.randn(400, 1), torch.randn(400, 1)
    label = ((left > 0) != (right > 0)).float().squeeze(1)
    head = pair_head.MlpHead(1 + 3)
    widen = torch.nn.functional.pad
    adam = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(300):
        adam.zero_grad()
        logits = head(widen(left, (0, 3)), widen(right, (0, 3)))
        torch.nn.functional.binary_cross_entropy_with_logits(logits, label).backward()
        adam.step()
    assert ((logits > 0) == label.bool()).float().mean() > 0.9
