from __future__ import annotations

from typing import Any

import pytest
import torch

from contracts.config.training import NEED_HIDDEN, Train
from contracts.features.feature_spec import FeatureSpec
from models.layers import batch_norm
from models.layers.mlp import Mlp
from models.networks import registry


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(50, 3) * 2 + 1, torch.randn(50, 5)


def trained(mlp: Mlp) -> Mlp:
    """With running figures, gains and shifts of its own."""
    batch_norm.insert(mlp)
    mlp.train()
    for _ in range(30):
        mlp(*inputs())
    with torch.no_grad():
        for norm in mlp.norms or ():
            assert isinstance(norm, torch.nn.BatchNorm1d)
            norm.weight.uniform_(0.5, 2)
            norm.bias.normal_()
    return mlp.eval()


def test_a_normalised_hidden_unit_has_mean_beta_and_deviation_gamma() -> None:
    mlp = Mlp(3, 5, (4,))
    batch_norm.insert(mlp)
    assert mlp.norms is not None
    z = mlp.norms[0](mlp.first(*inputs()))
    torch.testing.assert_close(z.mean(dim=0), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(z.std(dim=0, correction=0), torch.ones(4), atol=1e-3, rtol=0)


@pytest.mark.parametrize("hidden", [(8,), (8, 6, 4)])
def test_folding_keeps_the_function_and_takes_every_trace_away(hidden: tuple[int, ...]) -> None:
    mlp, batch = trained(Mlp(3, 5, hidden, dropout=0.3)), inputs()
    expected, names = mlp(*batch), set(Mlp(3, 5, hidden).state_dict())
    assert set(mlp.state_dict()) > names
    batch_norm.fold(mlp)
    torch.testing.assert_close(mlp(*batch), expected, atol=1e-5, rtol=1e-5)
    assert set(mlp.state_dict()) == names
    after = mlp(*batch)
    batch_norm.fold(mlp)
    assert torch.equal(mlp(*batch), after)


def test_a_bias_before_a_normalisation_waits_until_it_is_folded() -> None:
    mlp = Mlp(3, 5, (4, 2))
    batch_norm.insert(mlp)
    mlp(*inputs()).sum().backward()
    biases = [layer.bias for layer in mlp.hidden_layers()]
    assert [bias.grad for bias in biases] == [None, None]
    assert not any(bias.any() for bias in biases)
    assert mlp.output_bias.grad is not None
    batch_norm.fold(mlp)
    assert all(bias.requires_grad and bias.any() for bias in biases)


def test_a_batch_of_one_row_is_no_obstacle() -> None:
    mlp = trained(Mlp(3, 5, (4,)))
    one = [part[:1] for part in inputs()]
    expected = mlp(*one)
    torch.testing.assert_close(mlp.train()(*one), expected)


@pytest.mark.parametrize("name", registry.names())
def test_a_single_width_makes_hidden_units(name: str, spec: FeatureSpec, settings: Train) -> None:
    """Of FinalMLP as well, whose streams have no layer that is normalised then."""
    one, none = (settings.model_copy(update={"hidden": hidden}) for hidden in ((8,), ()))
    linear = name in ("popularity", "logistic_regression", "factorisation_machine")
    assert batch_norm.hidden_units(registry.build(name, spec, one)) is not linear
    if name not in NEED_HIDDEN:
        assert not batch_norm.hidden_units(registry.build(name, spec, none))


def test_embeddings_start_small_where_hidden_layers_bring_the_scale_back(spec: FeatureSpec, settings: Train) -> None:
    for name, factor in (("dnn", batch_norm.SMALL), ("factorisation_machine", 1.0)):
        network: Any = registry.build(name, spec, settings)
        before = network.embedding.weight.clone()
        batch_norm.shrink_embeddings(network)
        torch.testing.assert_close(network.embedding.weight, before * factor)
