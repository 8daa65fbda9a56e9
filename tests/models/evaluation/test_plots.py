from __future__ import annotations

import numpy as np
import pytest

from models.evaluation import plots
from models.evaluation.calibration import identity
from models.evaluation.evaluate import evaluate


@pytest.mark.parametrize("history", [
    [], [{"train_loss": 0.3, "validation_loss": 0.4}, {"train_loss": 0.2, "validation_loss": None}],
])
def test_a_picture_is_written_with_and_without_epochs(history, tmp_path) -> None:
    logits = np.linspace(-3, 3, 200)
    labels = np.arange(200) % 3 == 0
    plots.write(tmp_path / "new" / "picture.png", "dnn", history, evaluate(logits, labels, None, identity()))
    assert (tmp_path / "new" / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert plots.available()
