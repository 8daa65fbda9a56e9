from __future__ import annotations

from torch import nn

from contracts.summaries.train import EpochFigures
from models.jobs.fitted_model import FittedModel
from models.training.loop import FitResult


def test_figures_say_how_training_went() -> None:
    history = [EpochFigures(epoch=n, train_loss=1.0, validation_loss=loss, seconds=1.0)
               for n, loss in enumerate((0.5, 0.4, 0.6), start=1)]
    model = FittedModel("dnn", nn.Identity(), FitResult(history, 2, 3.5, 100.0, [0.0]), None)
    figures = model.figures("abc")
    assert (figures.epochs, figures.best_epoch, figures.seconds, figures.digest) == (3, 2, 3.5, "abc")
    assert figures.history == tuple(history)
    assert figures.warm_start is None
