from __future__ import annotations

import torch

from models.networks.dcn_v2 import CrossLayer


def test_a_cross_layer_is_the_formula_of_the_paper() -> None:
    layer = CrossLayer(6, 2)
    start, x = torch.randn(4, 6), torch.randn(4, 6)
    assert isinstance(layer.down, torch.nn.Linear)
    full = layer.up.weight @ layer.down.weight
    torch.testing.assert_close(layer(start, x), start * (x @ full.T + layer.up.bias) + x)


def test_without_a_rank_the_matrix_is_whole() -> None:
    layer = CrossLayer(6, 0)
    start, x = torch.randn(4, 6), torch.randn(4, 6)
    assert {name: tuple(value.shape) for name, value in layer.state_dict().items()} == {
        "up.weight": (6, 6), "up.bias": (6,)}
    torch.testing.assert_close(layer(start, x), start * (x @ layer.up.weight.T + layer.up.bias) + x)
