"""One picture per trained model: loss by epoch, ROC, reliability. Drawn without a display."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contracts.summaries.train import EpochFigures, RankerSummary, ReliabilityCurve, RocCurve


def available() -> bool:
    """Matplotlib is an optional part."""
    return importlib.util.find_spec("matplotlib") is not None


def write(path: Path, title: str, ranker: RankerSummary) -> None:
    """Writes a PNG. Without curves their two panels stay empty."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    loss, roc, bins = figure.subplots(1, 3)
    _loss(loss, ranker.history)
    if ranker.curves is not None:
        _roc(roc, ranker.curves.roc, ranker.auc)
        _reliability(bins, ranker.curves.reliability, ranker.ece)
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def _loss(axes: Any, history: Sequence[EpochFigures]) -> None:
    epochs = [entry.epoch for entry in history]
    axes.plot(epochs, [entry.train_loss for entry in history], marker="o", label="train loss")
    axes.plot(epochs, [entry.validation_loss for entry in history], marker="o", label="validation loss")
    axes.legend(loc="best")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(title="loss", xlabel="epoch", ylabel="nats per example")


def _roc(axes: Any, curve: RocCurve, auc: float) -> None:
    axes.plot(curve.false_positive_rate, curve.true_positive_rate)
    axes.plot([0, 1], [0, 1], linestyle=":", color="grey")
    axes.set(title=f"ROC, AUC {auc:.4f}", xlabel="false positive rate", ylabel="true positive rate")


def _reliability(axes: Any, bins: ReliabilityCurve, ece: float) -> None:
    top = max(*bins.predicted, *bins.observed)
    axes.plot([0, top], [0, top], linestyle=":", color="grey")
    axes.plot(bins.predicted, bins.observed, marker="o")
    axes.set(title=f"calibration, ECE {ece:.4f}", xlabel="predicted click rate", ylabel="observed click rate")
