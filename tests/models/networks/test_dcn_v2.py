from __future__ import annotations

import torch

from models.networks.dcn_v2 import CrossLayer


def test_a_cross_layer_is_the_formula_of_the_paper() -> None:
    layer = CrossLayer(6, 2)
    start, x = torch.randn(4, 6), torch.randn(4, 6)
    full = layer.up.weight @ layer.down.weight
    torch.testing.assert_close(layer(start, x), start * (x @ full.T + layer.up.bias) + x)
