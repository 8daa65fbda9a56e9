from __future__ import annotations

import numpy as np
import pytest

from contracts.summaries.train import EpochFigures, RankerSummary
from models.evaluation import plots
from models.evaluation.calibration import identity
from models.evaluation.evaluate import evaluate

EPOCHS = tuple(EpochFigures(epoch=n, train_loss=0.4 - n / 10, validation_loss=0.4, seconds=1.0) for n in (1, 2))


@pytest.mark.parametrize("history", [(), EPOCHS])
def test_a_picture_is_written_with_and_without_epochs(history, tmp_path) -> None:
    logits = np.linspace(-3, 3, 200)
    labels = np.arange(200) % 3 == 0
    ranker = RankerSummary(
        **dict(evaluate(logits, labels, None, identity())), seconds=1.0, rows_per_second=200.0, epochs=len(history),
        best_epoch=1, history=history, auc_standard_error=0.01, ece_uncalibrated=0.1, validation_auc=0.5,
        position_bias=(0.0,),
    )
    plots.write(tmp_path / "new" / "picture.png", "dnn", ranker)
    assert (tmp_path / "new" / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert plots.available()
