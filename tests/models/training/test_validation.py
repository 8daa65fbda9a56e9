from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.distributed.world import ALONE
from models.evaluation import calibration
from models.evaluation.metrics import log_loss
from models.layers.losses import ClickLoss, PreRankLoss
from models.layers.position_bias import PositionBias
from models.networks import registry
from models.networks.tower_pre_ranker import PreRanker, TowersPreRanker
from models.networks.two_tower import TwoTower
from models.training import fitting
from models.training.validation import evaluated, loss_of

CPU = torch.device("cpu")


@pytest.fixture
def network(item_world: Any, spec: FeatureSpec, settings: Train) -> Any:
    network: Any = registry.build("dnn", spec, settings)
    network.prepare(item_world.train)
    return network.eval()


def test_loss_and_auc_are_those_of_the_logits(network: Any, item_world: Any, auc: Any) -> None:
    found = evaluated(ClickLoss(network, PositionBias(0)), item_world.validation, "auc", ALONE, CPU)
    logits, labels = fitting.predict(network, item_world.validation), item_world.validation.column("_label")
    assert found.loss == pytest.approx(np.mean(np.logaddexp(0.0, logits) - labels * logits), rel=1e-5)
    assert found.auc == pytest.approx(auc(labels, logits), abs=1e-6)


@pytest.mark.parametrize("pre_ranks", [False, True])
def test_the_loss_is_of_probabilities_beside_all_negatives_where_training_had_a_share_of_them(
    network: Any, item_world: Any, spec: FeatureSpec, pre_ranks: bool
) -> None:
    """What calibration.identity undoes; the order, and the figures of it, stay as they are."""
    loss: Any = ClickLoss(network, PositionBias(0))
    if pre_ranks:
        towers, pre_ranker = TwoTower(spec, 4, (8,), 4, 0.0, 0.1), PreRanker(4, (8,))
        loss, network = PreRankLoss(pre_ranker, towers, PositionBias(0)), TowersPreRanker(towers, pre_ranker)
    found, as_trained = (evaluated(loss, item_world.validation, "auc", ALONE, CPU, rate) for rate in (0.1, 1.0))
    logits, labels = fitting.predict(network, item_world.validation), item_world.validation.column("_label")
    for figures, rate in ((found, 0.1), (as_trained, 1.0)):
        assert figures.loss == pytest.approx(log_loss(labels, calibration.identity(rate).apply(logits)), rel=1e-5)
    assert (found.auc, found.gauc) == (as_trained.auc, as_trained.gauc)


def test_half_precision_is_near_and_not_the_same(network: Any, batch: Any) -> None:
    loss = ClickLoss(network, PositionBias(0)).eval()
    with torch.inference_mode():
        (full, terms), (half, same) = (loss_of(loss, batch, half) for half in (False, True))
    assert terms == same == len(batch.label)
    assert float(half) == pytest.approx(float(full), rel=0.02)
    assert float(half) != float(full)
