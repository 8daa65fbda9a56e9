from __future__ import annotations

import pytest
import torch

from contracts.features.feature_spec import FeatureField, FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.networks.final_net import FinalNet


def test_gates_start_open(spec: FeatureSpec, batch: Batch) -> None:
    network = FinalNet(spec, 4, (8, 8), 0.0).eval()
    left, right = network.embedding(batch.request, batch.candidate)
    expected = network.output(network.layers(left, right)).squeeze(1) + network.prior(batch.candidate)
    torch.testing.assert_close(network(batch.request, batch.candidate), expected)


def test_a_gate_weighs_the_vector_of_its_slot_and_no_number(spec: FeatureSpec, batch: Batch) -> None:
    network = FinalNet(spec, 4, (8,), 0.0).eval()
    left, right = network.embedding(batch.request, batch.candidate)
    with torch.no_grad():
        network.gates.linear.bias[1] = -200.0
    gated, same = network.gates(left, right)
    expected = left.clone()
    expected[:, 4:8] = 0.0
    torch.testing.assert_close(gated, expected)
    torch.testing.assert_close(same, right)


@pytest.mark.parametrize("side", ["context", "item"])
def test_a_table_of_one_side_has_its_gates(side: str) -> None:
    spec = FeatureSpec(fields=(FeatureField(name="f", kind="categorical", side=side, size=5),))  # type: ignore[arg-type]
    ids, none = torch.tensor([[2], [3]], dtype=torch.int32), torch.zeros(2, 0)
    empty = FeatureBlock(torch.zeros(2, 0, dtype=torch.int32), none)
    request, candidate = (FeatureBlock(ids, none), empty) if side == "context" else (empty, FeatureBlock(ids, none))
    assert torch.isfinite(FinalNet(spec, 4, (8,), 0.0)(request, candidate)).all()
