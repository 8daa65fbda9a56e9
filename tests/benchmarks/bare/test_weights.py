"""Networks in straight lines, beside themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.bare.weights import look_and_layers, sigmoid
from benchmarks.serving.funnel import world
from models.networks.dnn import Dnn
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures, block


def test_a_requests_inputs_and_its_towers_layers_are_the_networks() -> None:
    bundle = world(300, "dnn")
    inputs = RequestFeatures(bundle).requester(RankQuery("u3", 1, {"context0": "v5"})).inputs
    look, layers = look_and_layers(bundle.towers.embedding, bundle.towers.user)
    found = layers.behind(look.inputs(*inputs) @ layers.first + layers.bias)[0]
    with torch.inference_mode():
        expected = bundle.towers.user_vector(block(inputs))[0].numpy()
    np.testing.assert_allclose(found / np.linalg.norm(found), expected, atol=1e-5)
    assert isinstance(bundle.ranker, Dnn)
    read = look_and_layers(bundle.ranker.embedding, bundle.ranker.mlp)[0].inputs(*inputs)
    assert read.shape == (1, bundle.ranker.embedding.request.width)


def test_probabilities_of_logits() -> None:
    found = sigmoid(np.array([-2.0, 0.0, 2.0], dtype=np.float32))
    assert found.tolist() == pytest.approx([0.119203, 0.5, 0.880797], abs=1e-6)
    assert found.dtype == np.float64
