from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from contracts.config.training import Train
from contracts.errors import SluiceError
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries.train import EpochFigures
from models.examples.batches import Batch, ExampleSet
from models.layers.losses import ClickLoss
from models.layers.position_bias import PositionBias
from models.networks import registry
from models.optimisation.learning_rate import FALL, LEAST_GAIN, MOST_FALLS
from models.training import fitting
from models.training.loop import Loop


def test_a_loss_that_is_not_finite_stops_the_run(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    network = registry.build("dnn", spec, settings)
    torch.nn.init.constant_(network.mlp.first.candidate, float("inf"))  # type: ignore[union-attr, arg-type]
    with pytest.raises(SluiceError, match=r"batch 1 of epoch 1; lower train\.learning_rate"):
        fitting.fit(network, item_world.train, item_world.validation, settings, seed=0)


def test_an_epoch_of_fewer_batches_than_are_looked_at_together_is_looked_at_in_its_end(
    item_world: Any, spec: FeatureSpec, settings: Train
) -> None:
    """As on a GPU, which is asked every so many batches."""
    network = registry.build("dnn", spec, settings)
    torch.nn.init.constant_(network.mlp.first.candidate, float("inf"))  # type: ignore[union-attr, arg-type]
    loop = Loop(ClickLoss(network, PositionBias(0), 0.0), [network], settings, 0, 1)
    loop.checked = 1000
    with pytest.raises(SluiceError, match=r"the loss is nan at batch \d+ of epoch 1; lower"):
        loop.run(item_world.train, item_world.validation, None, None)


@pytest.mark.parametrize("monitor", ["auc", "log_loss"])
def test_a_first_epoch_whose_validation_is_not_finite_says_where_and_what_to_do(
    item_world: Any, spec: FeatureSpec, settings: Train, monitor: str
) -> None:
    """A number of the validation window that is beyond float32, beside a training window without one."""
    whole = next(item_world.validation.batches(item_world.validation.rows))
    numbers = whole.candidate.dense.clone()
    numbers[7] = float("inf")
    validation = Held(item_world.validation.folder, spec, whole._replace(
        candidate=whole.candidate._replace(dense=numbers)))
    wanted = settings.model_copy(update={"monitor": monitor, "epochs": 2})
    network = registry.build("dnn", spec, wanted)
    said = rf"{validation.folder}: the validation loss is nan after epoch 1, .*numeric"
    with pytest.raises(SluiceError, match=said):
        fitting.fit(network, item_world.train, validation, wanted, seed=0)


class Held(ExampleSet):
    """One batch."""

    def __init__(self, folder: Path, spec: FeatureSpec, whole: Batch) -> None:
        super().__init__(folder, spec)
        self.whole = whole

    def batches(self, *_: object, **__: object) -> Iterator[Batch]:
        yield self.whole


def test_patience_ends_a_run_that_no_longer_improves(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    wild = settings.model_copy(update={"learning_rate": 0.3, "epochs": 30})
    network = registry.build("dnn", spec, wild)
    result = fitting.fit(network, item_world.train, item_world.validation, wild, seed=0)
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
    result = fitting.fit(network, item_world.train, item_world.validation, wanted, seed=0)
    assert result.best_epoch == min(result.history, key=lambda entry: entry.validation_loss).epoch


@pytest.mark.parametrize(("size", "over", "batches"), [(857, 1, 7), (1197, 15, 5), (1496, 16, 5), (10_000, 6000, 1)])
def test_a_last_batch_of_few_rows_is_left_out(
    size: int, over: int, batches: int, item_world: Any, spec: FeatureSpec, settings: Train
) -> None:
    assert item_world.train.rows % size == over
    short = settings.model_copy(update={"epochs": 1, "batch_size": size})
    seen: list[int] = []
    network = registry.build("logistic_regression", spec, short)
    fitting.fit(network, item_world.train, item_world.validation, short, 0, on_batch=lambda done, _: seen.append(done))
    assert len(seen) == batches


def test_callbacks_see_every_epoch_and_batch(item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    epochs: list[EpochFigures] = []
    batches: list[tuple[int, int]] = []
    short = settings.model_copy(update={"epochs": 1})
    network = registry.build("logistic_regression", spec, short)
    result = fitting.fit(network, item_world.train, item_world.validation, short, 0, on_epoch=epochs.append,
                         on_batch=lambda done, expected: batches.append((done, expected)))
    assert epochs == result.history
    assert batches == [(number, 24) for number in range(1, 25)]
