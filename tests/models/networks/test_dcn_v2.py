from __future__ import annotations

import pytest
import torch

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch
from models.inference import split_ranker
from models.networks.dcn_v2 import CrossLayer, CrossNetwork, DcnV2, GatedCrossLayer, Gdcn


def test_a_cross_layer_is_the_formula_of_the_paper() -> None:
    layer = CrossLayer(6, 2)
    start, x = torch.randn(4, 6), torch.randn(4, 6)
    assert isinstance(layer.down, torch.nn.Linear)
    full = layer.up.weight @ layer.down.weight
    torch.testing.assert_close(layer(start, x), start * (x @ full.T + layer.up.bias) + x)


@pytest.mark.parametrize("layer", [CrossLayer, GatedCrossLayer])
def test_the_gradients_of_a_cross_layer_are_those_of_its_formula(layer: type[CrossLayer]) -> None:
    made = layer(5, 2).double()
    inputs = [torch.randn(3, 5, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(made, inputs)


def test_without_a_rank_the_matrix_is_whole() -> None:
    layer = CrossLayer(6, 0)
    start, x = torch.randn(4, 6), torch.randn(4, 6)
    assert {name: tuple(value.shape) for name, value in layer.state_dict().items()} == {
        "up.weight": (6, 6), "up.bias": (6,)}
    torch.testing.assert_close(layer(start, x), start * (x @ layer.up.weight.T + layer.up.bias) + x)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_gated_layer_is_the_formula_of_the_paper(rank: int) -> None:
    layer = GatedCrossLayer(6, rank)
    start, x = torch.randn(4, 6), torch.randn(4, 6)

    def whole(up: torch.nn.Module, down: torch.nn.Module) -> torch.Tensor:
        return up.weight @ down.weight if rank else up.weight  # type: ignore[operator, return-value]

    form = x @ whole(layer.up, layer.down).T + layer.up.bias
    gate = 1 / (1 + torch.exp(-x @ whole(layer.gate_up, layer.gate_down).T))
    torch.testing.assert_close(layer(start, x), start * form * gate + x)


def test_gates_that_say_nothing_let_half_of_every_cross_through(spec: FeatureSpec, batch: Batch) -> None:
    """Then the network is DCNv2 with half its matrices and biases."""
    gated = Gdcn(spec, 3, (8,), 0.0, cross_layers=2, cross_rank=0).eval()
    plain = DcnV2(spec, 3, (8,), 0.0, cross_layers=2, cross_rank=0).eval()
    with torch.no_grad():
        for layer in gated.crosses:
            layer.gate_up.weight.zero_()  # type: ignore[union-attr, operator]
    plain.load_state_dict({name: value / 2 if "crosses" in name else value
                           for name, value in gated.state_dict().items() if "gate" not in name})
    torch.testing.assert_close(gated(*batch[:2]), plain(*batch[:2]))


@pytest.mark.parametrize("kind", [DcnV2, Gdcn])
def test_stacked_the_mlp_reads_what_the_crosses_give(kind: type[CrossNetwork], spec: FeatureSpec, batch: Batch) -> None:
    made = kind(spec, 3, (8,), 0.0, cross_layers=2, cross_rank=2, stacked=True).eval()
    left, right = made.embedding(*batch[:2])
    start = torch.cat([left, right], dim=1)
    x = made.crosses[1](start, made.crosses[0](start, start))
    expected = made.mlp(x[:, : left.shape[1]], x[:, left.shape[1] :]).squeeze(1)
    torch.testing.assert_close(made(*batch[:2]), expected + made.prior(batch.candidate))
    assert made.cross_output is None
    before = made(*batch[:2])
    made.rescale(0.5, 0.25)
    torch.testing.assert_close(made(*batch[:2]), 0.5 * before + 0.25)


def test_gates_are_not_left_out_where_dcn_v2_serves_in_numpy(spec: FeatureSpec) -> None:
    served = split_ranker.of(Gdcn(spec, 3, (8,), 0.0, cross_layers=1, cross_rank=2).eval())
    assert isinstance(served, split_ranker.PlainRanker)
