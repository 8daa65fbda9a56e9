from __future__ import annotations

import numpy as np
import pytest

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
