from __future__ import annotations

from typing import Any

import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.networks.tower_pre_ranker import PreRanker, TowersPreRanker
from models.networks.two_tower import TwoTower
from models.training import fitting


def test_one_user_vector_is_broadcast() -> None:
    ranker = PreRanker(8, (16,))
    user, items = torch.randn(1, 8), torch.randn(5, 8)
    torch.testing.assert_close(ranker(user, items), ranker(user.expand(5, 8), items))


def test_training_leaves_the_towers_as_they_were(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    towers, ranker = TwoTower(spec, 8, (16,), 8, 0.0, 0.2), PreRanker(8, (16,))
    before = {name: tensor.clone() for name, tensor in towers.state_dict().items()}
    train, validation = item_world.train, item_world.validation
    result = fitting.fit_pre_ranker(ranker, towers, train, validation, settings, 1, positions=4)
    assert result.history[-1].train_loss < result.history[0].train_loss
    assert all(torch.equal(before[name], tensor) for name, tensor in towers.state_dict().items())
    assert all(parameter.requires_grad for parameter in towers.parameters())


def test_as_a_network_over_rows_it_scores_the_tower_vectors(item_world: Any, spec: FeatureSpec) -> None:
    towers, ranker = TwoTower(spec, 8, (16,), 8, 0.0, 0.2).eval(), PreRanker(8, (16,)).eval()
    batch = next(iter(item_world.validation.batches(50)))
    expected = ranker(towers.user_vector(batch.request), towers.item_vector(batch.candidate))
    torch.testing.assert_close(TowersPreRanker(towers, ranker)(batch.request, batch.candidate), expected)
