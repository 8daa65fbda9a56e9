from __future__ import annotations

import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch
from models.inference.ensemble import Ensemble, size
from models.networks import registry


def test_the_logit_is_the_mean_of_the_members(spec: FeatureSpec, batch: Batch) -> None:
    members = [registry.build(name, spec, Train(embedding_dim=4, hidden=(8,))).eval() for name in ("dnn", "deep_fm")]
    logits = [member(batch.request, batch.candidate) for member in members]
    ensemble = Ensemble(members)
    torch.testing.assert_close(ensemble(batch.request, batch.candidate), (logits[0] + logits[1]) / 2)
    assert size(ensemble.state_dict()) == 2
    assert size(members[0].state_dict()) == 0
