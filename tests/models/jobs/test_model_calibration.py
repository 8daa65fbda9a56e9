from __future__ import annotations

import numpy as np
import pytest

from models.evaluation import slot_calibration
from models.evaluation.slot_calibration import position_logit
from models.examples.validation_half import halves
from models.jobs.model_calibration import calibrate
from models.networks.popularity import Popularity
from models.training import fitting


def test_probabilities_of_the_calibration_half_add_up_to_its_clicks(make_task, auc) -> None:
    task = make_task()
    network = Popularity(task.spec)
    network.prepare(task.examples("train"))
    validation = task.examples("validation")
    logits, labels, half = fitting.predict(network, validation), validation.column("_label"), halves(validation)
    bias = (0.0, -0.5, -1.0, -1.0)
    curve, quality, kept = calibrate(task, network, bias)
    np.testing.assert_array_equal(kept, logits)
    shown = logits + position_logit(validation, bias)
    assert curve.apply(shown[half == 1]).sum() == pytest.approx(labels[half == 1].sum(), rel=1e-4)
    assert quality == pytest.approx(auc(labels, logits))


def test_who_learned_nothing_of_positions_is_calibrated_by_what_was_shown_first(
    make_task, monkeypatch
) -> None:
    """However few that are here: of all slots the curve would promise less than is clicked at position 1."""
    monkeypatch.setattr(slot_calibration, "ENOUGH", 0)
    task = make_task()
    network = Popularity(task.spec)
    network.prepare(task.examples("train"))
    validation = task.examples("validation")
    logits, labels, half = fitting.predict(network, validation), validation.column("_label"), halves(validation)
    first = (validation.column("_position") == 1) & (half == 1)
    curve, _, _ = calibrate(task, network, ())
    assert curve.apply(logits[first]).sum() == pytest.approx(labels[first].sum(), rel=1e-4)
