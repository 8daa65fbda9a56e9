from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from contracts.features.feature_spec import FeatureSpec
from models.layers.embedding import FusedEmbedding
from models.optimisation.row_adam import RowAdam
from models.optimisation.row_shares import MEMORY, batch_shares, paces, penalties


def test_a_share_is_that_of_the_batches_which_have_the_value(item_world: Any, spec: FeatureSpec) -> None:
    embedding, train = FusedEmbedding(spec, 4), item_world.train
    shares, user = batch_shares(embedding, train, 60), embedding.starts["user"]
    batches = [batch.request.ids[:, 0] for batch in train.batches(60, shuffle=True, seed=3)]
    for value in range(2, 12):
        found = np.mean([bool((ids == value).any()) for ids in batches])
        assert float(shares[user + value]) == pytest.approx(found, abs=0.2)
    assert float(shares[user + 1]) == pytest.approx(-np.expm1(-60 / train.rows), rel=1e-4)  # never seen: as seen once


def test_an_epoch_of_penalties_is_the_prior_whatever_a_value_counts() -> None:
    """Penalty per batch times the batches that have the row = strength / N x batches, for rare and frequent values."""
    shares = torch.tensor([0.001, 0.3, 1.0])
    found = penalties(shares, 7.0, 6000)
    assert found is not None
    torch.testing.assert_close(found * shares, torch.full((3,), 7.0 / 6000))
    assert penalties(shares, 0.0, 6000) is None


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_a_rare_row_goes_as_far_as_adam_on_the_whole_table_takes_it(share: float) -> None:
    """A gradient of changing sign and size with a mean, in every 1 / share-th step."""
    torch.manual_seed(0)
    steps, whole = 6000, torch.nn.Parameter(torch.zeros(1, 64))
    rare = torch.nn.Parameter(torch.zeros(1, 64))
    adam = torch.optim.Adam([whole], lr=1e-3)
    row_adam = RowAdam(rare, 1e-3, 0.0, pace=paces(torch.tensor([share])))
    for _ in range(steps):
        gradient = torch.randn(1, 64) - 0.3
        there = bool(torch.rand(()) < share)
        whole.grad = gradient if there else torch.zeros_like(gradient)
        adam.step()
        if there:
            row_adam.step(torch.tensor([0]), gradient)
    assert float(rare.detach().mean() / whole.detach().mean()) == pytest.approx(1.0, abs=0.15)


def test_a_pace_has_an_end() -> None:
    assert paces(torch.tensor([1.0, 0.25, 1e-9])).tolist() == pytest.approx([1.0, 2.0, MEMORY])
