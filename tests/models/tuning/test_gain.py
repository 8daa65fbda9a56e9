from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.artifacts import Artifacts
from contracts.features.feature_spec import FeatureSpec
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet
from models.training.monitor import Monitor
from models.tuning import gain as gain_module
from models.tuning.gain import gain

MONITORS: tuple[Monitor, ...] = ("auc", "gauc", "log_loss")


@pytest.fixture
def validation(examples: Artifacts, spec: FeatureSpec) -> ExampleSet:
    return ExampleSet(examples.examples("validation"), spec)


@pytest.mark.parametrize("monitor", MONITORS)
def test_knowing_the_label_better_is_a_gain_and_the_same_is_none(validation: ExampleSet, monitor: Monitor) -> None:
    labels, noise = validation.column("_label"), np.random.default_rng(1).normal(size=validation.rows)
    better = gain(validation, labels + 0.3 * noise, noise, monitor, 1)
    assert better.value > 3 * better.standard_error > 0
    worse = gain(validation, noise, labels + 0.3 * noise, monitor, 1)
    assert worse.value == pytest.approx(-better.value)
    same = gain(validation, noise, noise, monitor, 1)
    assert (same.value, same.standard_error) == (0.0, 0.0)


def test_a_log_loss_is_of_the_probabilities_of_the_rows_that_are_there(validation: ExampleSet) -> None:
    """Logits that are right among all items, or of training on a share of the negatives, gain over any that are off by
    a constant."""
    labels = validation.column("_label")
    rate = float(labels.mean())
    right = np.full(validation.rows, np.log(rate / (1 - rate)))
    thinned = gain(validation, right - np.log(0.2), right, "log_loss", 1, negative_rate=0.2)
    assert thinned.value > 3 * thinned.standard_error > 0
    draws = np.random.default_rng(3).uniform(5.0, 50.0, validation.rows)
    drawn = Drawn(validation.folder, validation.spec)
    drawn.draws = draws
    among_all = gain(drawn, right + np.log(draws), right, "log_loss", 1)
    assert among_all.value > 3 * among_all.standard_error > 0
    for found in (thinned, among_all):
        assert found.value <= np.log(50.0)


class Drawn(ExampleSet):
    """Rows that were drawn for positives, `draws` [N] for each."""

    draws: np.ndarray

    def log_draws(self) -> np.ndarray:
        return np.log(self.draws)


def test_the_figures_are_those_of_their_names(validation: ExampleSet) -> None:
    labels, logits = validation.column("_label"), np.random.default_rng(2).normal(size=validation.rows)
    flat = np.zeros(validation.rows)
    probability = 1 / (1 + np.exp(-logits))
    loss = -np.mean(labels * np.log(probability) + (1 - labels) * np.log(1 - probability))
    assert gain(validation, logits, flat, "auc", 1).value == pytest.approx(auc(labels, logits) - 0.5)
    assert gain(validation, logits, flat, "log_loss", 1).value == pytest.approx(np.log(2) - loss, abs=1e-6)


@pytest.fixture
def large(tmp_path: Path, spec: FeatureSpec, columns: Any, write: Callable[..., Path]) -> Callable[[float], ExampleSet]:
    """20,000 rows with a share of clicks."""

    def made(share: float) -> ExampleSet:
        drawn = columns(spec, 20_000, 5)
        drawn["_label"] = (np.random.default_rng(6).random(20_000) < share).astype(float)
        write(tmp_path / f"share={share}", drawn)
        return ExampleSet(tmp_path / f"share={share}", spec)

    return made


@pytest.mark.parametrize("monitor", MONITORS)
@pytest.mark.parametrize("share", [0.01, 0.8])
def test_of_a_large_window_the_margin_for_chance_is_that_of_its_clicks(
    large: Callable[[float], ExampleSet], monitor: Monitor, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every 10th row has a tenth of them, which has three times the error. Of four rows in five with a click half may
    be of those."""
    examples = large(share)
    labels, noise = examples.column("_label"), np.random.default_rng(7).normal(size=(2, examples.rows))
    ours, theirs = noise + np.array([[0.8], [0.5]]) * labels
    whole = gain(examples, ours, theirs, monitor, 1)
    monkeypatch.setattr(gain_module, "ROWS", 2_000)
    found = gain(examples, ours, theirs, monitor, 1)
    if monitor == "auc":
        most = {0.01: 1.4, 0.8: 3.0}[share]
        assert whole.standard_error < found.standard_error < most * whole.standard_error
        assert found.value == pytest.approx(whole.value, abs=2 * found.standard_error)
    else:
        assert found == whole
