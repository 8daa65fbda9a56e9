from __future__ import annotations

import torch

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch
from models.networks.deep_fm import DeepFm
from models.networks.factorisation_machine import FactorisationMachine


def test_it_is_the_machine_and_the_mlp_on_the_same_rows(spec: FeatureSpec, batch: Batch) -> None:
    network = DeepFm(spec, 3, (8,), 0.0).eval()
    with torch.no_grad():
        network.embedding.weight[1:, 3].normal_()
    machine = FactorisationMachine(spec, 3)
    machine.step_scale = network.step_scale
    machine.load_state_dict({name: value for name, value in network.state_dict().items() if not name.startswith("mlp")})
    deep = network.mlp(*network.embedding(batch.request, batch.candidate)).squeeze(1)
    expected = machine(batch.request, batch.candidate) + deep
    torch.testing.assert_close(network(batch.request, batch.candidate), expected)


def test_both_parts_teach_a_value_its_vector(spec: FeatureSpec, batch: Batch) -> None:
    network = DeepFm(spec, 3, (8,), 0.0)
    for part in ("mlp", "machine"):
        network.zero_grad()
        inputs = network.embedding(batch.request, batch.candidate)
        (network.mlp(*inputs) if part == "mlp" else network.interactions(*inputs)).sum().backward()
        gradient = network.embedding.weight.grad
        assert gradient is not None
        assert gradient.coalesce().values()[:, :3].abs().sum() > 0
