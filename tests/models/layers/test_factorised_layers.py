from __future__ import annotations

import pytest
import torch

from models.layers import batch_norm
from models.layers.factorised_layers import FactorisedLayer, FactorisedLayers
from models.layers.mlp import SplitLinear


def inputs(rows: int = 50) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, 3) * 2 + 1, torch.randn(rows, 5)


def test_a_layer_is_a_form_times_one_more_than_another() -> None:
    layer, (request, candidate) = FactorisedLayer(SplitLinear(3, 5, 8), 4), inputs()
    assert isinstance(layer.linear, SplitLinear)
    torch.nn.init.normal_(layer.shift)
    weight = torch.cat([layer.linear.request, layer.linear.candidate], 1)
    form, gate = (torch.cat([request, candidate], 1) @ weight.T + layer.linear.bias).chunk(2, dim=1)
    torch.testing.assert_close(layer(request, candidate), form * (1 + gate) + layer.shift)


def test_a_row_of_the_request_is_broadcast() -> None:
    layers, (request, candidate) = FactorisedLayers(3, 5, (8, 4)).eval(), inputs()
    expected = layers(request[:1].expand(50, -1), candidate)
    torch.testing.assert_close(layers(request[:1], candidate), expected)


@pytest.mark.parametrize("hidden", [(8,), (8, 6, 4)])
def test_folding_normalisation_keeps_the_function(hidden: tuple[int, ...]) -> None:
    layers, batch = FactorisedLayers(3, 5, hidden, dropout=0.3), inputs()
    names = set(layers.state_dict())
    batch_norm.insert(layers)
    assert layers.norms is not None
    for _ in range(30):
        layers(*inputs())
    with torch.no_grad():
        for norm in layers.norms:
            assert isinstance(norm, torch.nn.BatchNorm1d)
            norm.weight.uniform_(0.5, 2)
            norm.bias.normal_()
    expected = layers.eval()(*batch)
    batch_norm.fold(layers)
    torch.testing.assert_close(layers(*batch), expected, atol=1e-5, rtol=1e-5)
    assert set(layers.state_dict()) == names


def test_dropout_acts_in_training_alone() -> None:
    layers, batch = FactorisedLayers(3, 5, (64,), dropout=0.5), inputs()
    assert not torch.equal(layers(*batch), layers(*batch))
    layers.eval()
    assert torch.equal(layers(*batch), layers(*batch))
