from __future__ import annotations

import torch

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch
from models.networks.dnn import Dnn


def test_without_hidden_layers_it_is_linear_in_its_inputs(spec: FeatureSpec, batch: Batch) -> None:
    network = Dnn(spec, 4, (), 0.0)
    request, candidate = network.embedding(batch.request, batch.candidate)
    first = network.mlp.first
    expected = request @ first.request.T + candidate @ first.candidate.T + first.bias
    torch.testing.assert_close(network(batch.request, batch.candidate), expected.squeeze(1))


def test_it_starts_at_the_click_rate(spec: FeatureSpec, item_world) -> None:
    network = Dnn(spec, 4, (8,), 0.0)
    network.prepare(item_world.train)
    rate = torch.tensor(item_world.train.column("_label").mean())
    torch.testing.assert_close(network.mlp.output_bias.detach().double(), rate.logit()[None])
