from __future__ import annotations

from typing import Any

import pytest
import torch

from contracts.features.feature_spec import FeatureField, FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.networks.final_mlp import BilinearFusion, FinalMlp


@pytest.mark.parametrize(("width", "heads"), [(16, 8), (12, 4), (7, 1)])
def test_the_fusion_is_the_bilinear_form_of_each_head(width: int, heads: int) -> None:
    fusion = BilinearFusion(width)
    one, other = torch.randn(5, width), torch.randn(5, width)
    expected = (fusion.left(one) + fusion.right(other)).squeeze(1)
    piece = width // heads
    for row in range(5):
        for head in range(heads):
            span = slice(head * piece, (head + 1) * piece)
            expected[row] += one[row, span] @ fusion.form[head] @ other[row, span]
    assert fusion.heads == heads
    torch.testing.assert_close(fusion(one, other), expected)


def test_open_gates_leave_the_inputs_as_they_are(spec: FeatureSpec, batch: Batch) -> None:
    network: Any = FinalMlp(spec, 4, (8, 8), 0.0).eval()
    for gate in network.gates:
        torch.nn.init.zeros_(gate.layers[-1].weight)
        torch.nn.init.zeros_(gate.layers[-1].bias)
    left, right = network.embedding(batch.request, batch.candidate)
    streams = [torch.relu(stream(left, right)) for stream in network.streams]
    torch.testing.assert_close(network(batch.request, batch.candidate), network.fusion(*streams))


def test_a_closed_gate_hides_an_input_from_its_stream_alone(spec: FeatureSpec, batch: Batch) -> None:
    network: Any = FinalMlp(spec, 4, (8, 8), 0.0).eval()
    with torch.no_grad():
        network.gates[0].layers[-1].weight.zero_()
        network.gates[0].layers[-1].bias.fill_(-200.0)
    left, right = network.embedding(batch.request, batch.candidate)
    blind = torch.relu(network.streams[0](left * 0, right * 0))
    gate = network.gates[1](right)
    seeing = torch.relu(network.streams[1](left * gate[:, : left.shape[1]], right * gate[:, left.shape[1] :]))
    torch.testing.assert_close(network(batch.request, batch.candidate), network.fusion(blind, seeing))


@pytest.mark.parametrize("side", ["context", "item"])
def test_a_table_of_one_side_has_a_gate_of_nothing(side: str) -> None:
    spec = FeatureSpec(fields=(FeatureField(name="f", kind="categorical", side=side, size=5),))  # type: ignore[arg-type]
    ids, none = torch.tensor([[2], [3]], dtype=torch.int32), torch.zeros(2, 0)
    empty = FeatureBlock(torch.zeros(2, 0, dtype=torch.int32), none)
    request, candidate = (FeatureBlock(ids, none), empty) if side == "context" else (empty, FeatureBlock(ids, none))
    assert torch.isfinite(FinalMlp(spec, 4, (8,), 0.0)(request, candidate)).all()
