from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.evaluation import calibration
from models.evaluation.metrics import log_loss
from models.examples.batches import ExampleSet
from models.networks import registry
from models.training import fitting


def test_what_training_adds_is_gone_from_a_trained_network(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    """Batch normalisation is folded away; popularity stays, and is what was counted."""
    names = set(registry.build("dcn_v2", spec, settings).state_dict())
    network: Any = registry.build("dcn_v2", spec, settings)
    fitting.fit(network, item_world.train, item_world.validation, settings, seed=0)
    assert set(network.state_dict()) == names
    assert network.prior.logit.any()
    without = settings.model_copy(update={"item_prior": False, "epochs": 1})
    network = registry.build("dcn_v2", spec, without)
    fitting.fit(network, item_world.train, item_world.validation, without, seed=0)
    assert not network.prior.logit.any()


def test_smoothed_labels_keep_logits_small(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    sizes = []
    for smoothing in (0.0, 0.3):
        changed = settings.model_copy(update={"label_smoothing": smoothing, "item_prior": False})
        torch.manual_seed(0)
        network = registry.build("dnn", spec, changed)
        fitting.fit(network, item_world.train, item_world.validation, changed, seed=0)
        sizes.append(np.abs(fitting.predict(network, item_world.validation)).mean())
    assert sizes[1] < 0.6 * sizes[0]


def test_the_prior_on_values_is_gaussian_whatever_is_behind_them(
    item_world: Any, spec: FeatureSpec, settings: Train
) -> None:
    """Effects of a linear model, trained until they rest, are those of ridge regression: a weight is a tenth of its
    effect, so that the precision of an effect is a hundredth of `embedding_l2`."""
    rest = settings.model_copy(update={
        "embedding_l2": 30_000.0, "item_prior": False, "unknown_ids": False, "epochs": 30, "patience": 30,
        "schedule": "linear", "monitor": "log_loss"})
    network = registry.build("logistic_regression", spec, rest)
    fitting.fit(network, item_world.train, item_world.train, rest, seed=0)
    (inputs,) = item_world.train.batches(item_world.train.rows)
    ids = torch.cat([inputs.request.ids, inputs.candidate.ids], dim=1).numpy()
    columns = np.eye(ids.max() + 1)[ids]
    table = np.concatenate([*columns.transpose(1, 0, 2), inputs.request.dense, inputs.candidate.dense], axis=1)
    ridge = LogisticRegression(C=1 / 300).fit(table, inputs.label)
    found, wanted = fitting.predict(network, item_world.train), ridge.decision_function(table)
    assert np.corrcoef(found, wanted)[0, 1] > 0.95
    assert np.std(found) == pytest.approx(np.std(wanted), rel=0.15)


def test_with_a_share_of_the_negatives_training_stops_by_the_loss_among_all_of_them(
    spec: FeatureSpec, settings: Train, columns: Any, write: Any, tmp_path: Path
) -> None:
    drawn, random = columns(spec, 20_000, 0), np.random.default_rng(1)
    drawn["_label"] = (random.random(20_000) < 0.1).astype(np.float64)
    kept = (drawn["_label"] > 0) | (random.random(20_000) < 0.1)
    thinned, whole = (ExampleSet(write(tmp_path / name, {key: part[rows] for key, part in drawn.items()}), spec)
                      for name, rows in (("thinned", kept), ("whole", slice(None))))
    wanted = settings.model_copy(update={"monitor": "log_loss", "item_prior": False})
    network = registry.build("dnn", spec, wanted)
    found = fitting.fit(network, thinned, whole, wanted, seed=0, negative_rate=0.1)
    logits, labels = fitting.predict(network, whole), whole.column("_label")
    best = found.history[found.best_epoch - 1].validation_loss
    assert best == pytest.approx(log_loss(labels, calibration.identity(0.1).apply(logits)), rel=1e-3)
    assert best == pytest.approx(log_loss(labels, np.full(len(labels), labels.mean())), rel=0.05)


def test_bf16_learns_as_well(item_world: Any, spec: FeatureSpec, settings: Train, auc: Any) -> None:
    half = settings.model_copy(update={"precision": "bf16"})
    network = registry.build("dnn", spec, half)
    fitting.fit(network, item_world.train, item_world.validation, half, seed=1)
    labels = item_world.validation.column("_label")
    assert auc(labels, fitting.predict(network, item_world.validation)) > auc(labels, item_world.logits) - 0.02
