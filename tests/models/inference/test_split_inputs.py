"""Inputs with products and without, and the prior of the items."""

from __future__ import annotations

import torch

from contracts.features.encoding import Encoded
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch
from models.inference.split_inputs import Inputs
from models.networks.dnn import Dnn


@torch.inference_mode()
def test_both_blocks_and_the_prior(spec: FeatureSpec, batch: Batch) -> None:
    torch.manual_seed(0)
    made = Dnn(spec, 4, (8,), 0.0).eval()
    made.prior.logit.copy_(torch.randn(len(made.prior.logit)))
    inputs = Inputs(made.embedding, made.prior)
    request, candidate = (Encoded(block.ids.numpy(), block.dense.numpy()) for block in (batch.request, batch.candidate))
    left, right = made.embedding(batch.request, batch.candidate)
    torch.testing.assert_close(torch.from_numpy(inputs.request(request)), left)
    torch.testing.assert_close(torch.from_numpy(inputs.candidate(request.ids, candidate)), right)
    torch.testing.assert_close(torch.from_numpy(inputs.prior(candidate.ids)), made.prior(batch.candidate))
