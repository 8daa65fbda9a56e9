from __future__ import annotations

import torch

from models.layers.position_bias import PositionBias


def test_position_one_is_zero_and_cannot_move() -> None:
    bias = PositionBias(3)
    torch.nn.init.constant_(bias.weight, 0.1)
    values = bias(torch.tensor([1, 2, 3, 9]))
    assert values[0] == 0.0
    assert values[2] == values[3] != 0.0
    bias(torch.tensor([1, 1])).sum().backward()
    assert not bias.weight.grad.any()  # type: ignore[union-attr]


def test_a_log_without_positions_has_no_bias() -> None:
    assert PositionBias(0)(torch.tensor([1, 5])).tolist() == [0.0, 0.0]
