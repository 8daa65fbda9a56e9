from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from contracts.features.feature_spec import FeatureSpec
from models.layers.embedding import FusedEmbedding
from models.training.row_penalty import row_penalties


def test_an_epoch_of_penalties_is_the_prior_whatever_a_value_counts(item_world: Any, spec: FeatureSpec) -> None:
    """Penalty per batch times the batches that have the row = strength / N x batches, for rare and frequent values."""
    embedding, train, size = FusedEmbedding(spec, 4), item_world.train, 60
    found = row_penalties(embedding, train, 7.0, size)
    assert found is not None
    users, batches = train.column("user"), train.rows / size
    counts = np.bincount(users, minlength=spec.slot("user").size)[2:]
    rows = embedding.starts["user"] + 2 + np.arange(len(counts))
    share = 1 - np.exp(-counts * size / train.rows)
    np.testing.assert_allclose(found[rows].numpy() * share * batches, 7.0 / train.rows * batches, rtol=1e-5)


def test_a_value_never_seen_counts_as_seen_once_and_nothing_is_no_penalty(item_world: Any, spec: FeatureSpec) -> None:
    embedding = FusedEmbedding(spec, 4)
    found = row_penalties(embedding, item_world.train, 1.0, 100)
    assert found is not None
    assert torch.isfinite(found).all()
    assert found[embedding.starts["user"] + 1] == found.max() == pytest.approx(
        1 / item_world.train.rows / -np.expm1(-100 / item_world.train.rows), rel=1e-5)
    assert row_penalties(embedding, item_world.train, 0.0, 100) is None
