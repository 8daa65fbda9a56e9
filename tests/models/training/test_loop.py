from __future__ import annotations

from typing import Any

import pytest
import torch

from contracts.config.training import Train
from contracts.errors import SluiceError
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries.train import EpochFigures
from models.networks import registry
from models.training import loop as training_loop


def test_a_loss_that_is_not_finite_stops_the_run(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    network = registry.build("dnn", spec, settings)
    torch.nn.init.constant_(network.mlp.first.candidate, float("inf"))  # type: ignore[union-attr, arg-type]
    with pytest.raises(SluiceError, match=r"batch 1 of epoch 1; lower train\.learning_rate"):
        training_loop.fit(network, item_world.train, item_world.validation, settings, seed=0)


def test_patience_ends_a_run_that_no_longer_improves(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    wild = settings.model_copy(update={"learning_rate": 0.3, "epochs": 30})
    network = registry.build("dnn", spec, wild)
    result = training_loop.fit(network, item_world.train, item_world.validation, wild, seed=0)
    assert len(result.history) == result.best_epoch + wild.patience < 30


def test_callbacks_see_every_epoch_and_batch(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    epochs: list[EpochFigures] = []
    batches: list[tuple[int, int]] = []
    short = settings.model_copy(update={"epochs": 1})
    network = registry.build("logistic_regression", spec, short)
    result = training_loop.fit(network, item_world.train, item_world.validation, short, 0, on_epoch=epochs.append,
                               on_batch=lambda done, expected: batches.append((done, expected)))
    assert epochs == result.history
    assert batches == [(number, 24) for number in range(1, 25)]


def test_bf16_learns_as_well(item_world: Any, spec: FeatureSpec, settings: Train, auc: Any) -> None:
    half = settings.model_copy(update={"precision": "bf16"})
    network = registry.build("dnn", spec, half)
    training_loop.fit(network, item_world.train, item_world.validation, half, seed=1)
    labels = item_world.validation.column("_label")
    assert auc(labels, training_loop.predict(network, item_world.validation)) > auc(labels, item_world.logits) - 0.02
