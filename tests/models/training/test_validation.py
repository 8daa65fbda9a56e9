from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.distributed.world import ALONE
from models.layers.losses import ClickLoss
from models.layers.position_bias import PositionBias
from models.networks import registry
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


def test_half_precision_is_near_and_not_the_same(network: Any, batch: Any) -> None:
    loss = ClickLoss(network, PositionBias(0)).eval()
    with torch.inference_mode():
        (full, terms), (half, same) = (loss_of(loss, batch, half) for half in (False, True))
    assert terms == same == len(batch.label)
    assert float(half) == pytest.approx(float(full), rel=0.02)
    assert float(half) != float(full)
