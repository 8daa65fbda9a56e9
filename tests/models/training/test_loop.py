from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from contracts.config.training import Train
from contracts.errors import SluiceError
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries.train import EpochFigures
from models.networks import registry
from models.training import loop as training_loop
from models.training.learning_rate import FALL, LEAST_GAIN, MOST_FALLS


def test_a_loss_that_is_not_finite_stops_the_run(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    network = registry.build("dnn", spec, settings)
    torch.nn.init.constant_(network.mlp.first.candidate, float("inf"))  # type: ignore[union-attr, arg-type]
    with pytest.raises(SluiceError, match=r"batch 1 of epoch 1; lower train\.learning_rate"):
        training_loop.fit(network, item_world.train, item_world.validation, settings, seed=0)


def test_patience_ends_a_run_that_no_longer_improves(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    wild = settings.model_copy(update={"learning_rate": 0.3, "epochs": 30})
    network = registry.build("dnn", spec, wild)
    result = training_loop.fit(network, item_world.train, item_world.validation, wild, seed=0)
    best, least = 0.0, float("inf")
    better = []
    for entry in result.history:
        assert entry.validation_auc is not None
        better.append(entry.validation_auc > best or entry.validation_loss < least * (1 - LEAST_GAIN))
        best, least = max(best, entry.validation_auc), min(least, entry.validation_loss)
    assert len(better) < 30
    assert not any(better[-wild.patience :])
    rates = [(entry.learning_rate or 0.0) / wild.learning_rate for entry in result.history]
    falls = [after / before for before, after in itertools.pairwise(rates) if after != before]
    assert falls == pytest.approx([FALL] * len(falls))
    assert 1 <= len(falls) <= MOST_FALLS


def test_the_log_loss_decides_where_it_is_wanted(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    wanted = settings.model_copy(update={"monitor": "log_loss", "learning_rate": 0.05, "epochs": 6})
    network = registry.build("dnn", spec, wanted)
    result = training_loop.fit(network, item_world.train, item_world.validation, wanted, seed=0)
    assert result.best_epoch == min(result.history, key=lambda entry: entry.validation_loss).epoch


def test_what_training_adds_is_gone_from_a_trained_network(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    """Batch normalisation is folded away; popularity stays, and is what was counted."""
    names = set(registry.build("dcn_v2", spec, settings).state_dict())
    network: Any = registry.build("dcn_v2", spec, settings)
    training_loop.fit(network, item_world.train, item_world.validation, settings, seed=0)
    assert set(network.state_dict()) == names
    assert network.prior.logit.any()
    without = settings.model_copy(update={"item_prior": False, "epochs": 1})
    network = registry.build("dcn_v2", spec, without)
    training_loop.fit(network, item_world.train, item_world.validation, without, seed=0)
    assert not network.prior.logit.any()


def test_smoothed_labels_keep_logits_small(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    sizes = []
    for smoothing in (0.0, 0.3):
        changed = settings.model_copy(update={"label_smoothing": smoothing, "item_prior": False})
        torch.manual_seed(0)
        network = registry.build("dnn", spec, changed)
        training_loop.fit(network, item_world.train, item_world.validation, changed, seed=0)
        sizes.append(np.abs(training_loop.predict(network, item_world.validation)).mean())
    assert sizes[1] < 0.6 * sizes[0]


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
