from __future__ import annotations

import torch

from models.layers.mlp import Mlp, SplitLinear


def test_two_blocks_are_one_linear_layer() -> None:
    layer = SplitLinear(3, 5, 4)
    request, candidate = torch.randn(7, 3), torch.randn(7, 5)
    whole = torch.cat([request, candidate], 1) @ torch.cat([layer.request, layer.candidate], 1).T + layer.bias
    torch.testing.assert_close(layer(request, candidate), whole)


def test_no_hidden_layer_is_linear_and_one_side_may_be_empty() -> None:
    mlp = Mlp(0, 5, (), out=2)
    candidate = torch.randn(3, 5)
    torch.testing.assert_close(mlp(candidate[:, :0], candidate), candidate @ mlp.first.candidate.T + mlp.output_bias)


def test_dropout_acts_in_training_alone() -> None:
    mlp = Mlp(2, 2, (64,), dropout=0.5)
    x = torch.randn(5, 2)
    assert not torch.equal(mlp(x, x), mlp(x, x))
    mlp.eval()
    assert torch.equal(mlp(x, x), mlp(x, x))
