from __future__ import annotations

from typing import Any

import pytest
import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.networks.two_tower import TwoTower
from models.training import fitting


@pytest.fixture
def towers(spec: FeatureSpec) -> TwoTower:
    return TwoTower(spec, 8, (16,), 8, 0.0, 0.2).eval()


def test_the_logit_is_the_product_of_unit_vectors(towers: TwoTower, batch: Batch) -> None:
    users, items = towers.user_vector(batch.request), towers.item_vector(batch.candidate)
    torch.testing.assert_close(users.norm(dim=1), torch.ones(64))
    torch.testing.assert_close(items.norm(dim=1), torch.ones(64))
    torch.testing.assert_close(towers(batch.request, batch.candidate), (users * items).sum(1) / 0.2)


def test_both_are_what_each_is_alone(towers: TwoTower, batch: Batch) -> None:
    request = FeatureBlock(*(part[:5] for part in batch.request))
    users, items = towers.both(request, batch.candidate)
    torch.testing.assert_close(users, towers.user_vector(request))
    torch.testing.assert_close(items, towers.item_vector(batch.candidate))


def test_the_item_vector_ignores_crosses(towers: TwoTower, batch: Batch, spec: FeatureSpec) -> None:
    width = spec.id_width("item")
    item = FeatureBlock(batch.candidate.ids[:, :width], batch.candidate.dense)
    torch.testing.assert_close(towers.item_vector(item), towers.item_vector(batch.candidate))


def test_clicked_items_come_first(make_world: Any, spec: FeatureSpec, settings: Train, auc: Any) -> None:
    world = make_world(lambda c: 3.0 * (c["user_group"] == c["item_group"]) - 3.0, rows=8000, seed=21)
    towers = TwoTower(spec, 8, (16,), 8, 0.0, 0.2)
    longer = settings.model_copy(update={"tower_epochs": 10, "patience": 10})
    result = fitting.fit_towers(towers, world.train, world.validation, longer, seed=1)
    assert result.history[-1].train_loss < result.history[0].train_loss
    labels, scores = world.validation.column("_label"), fitting.predict(towers, world.validation)
    assert auc(labels, scores) > auc(labels, world.logits) - 0.12  # of 0.80: over half of the way from chance
