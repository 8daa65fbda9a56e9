"""One picture per trained model: loss by epoch, ROC, reliability. Drawn without a display."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LOSSES = ("train_loss", "validation_loss")


def available() -> bool:
    """Matplotlib is an optional part."""
    return importlib.util.find_spec("matplotlib") is not None


def write(path: Path, title: str, history: Sequence[Mapping[str, Any]], figures: Mapping[str, Any]) -> None:
    """`history` has one entry per epoch (none for models that are not trained), `figures` is `evaluate`'s answer."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    loss, roc, bins = figure.subplots(1, 3)
    _loss(loss, history)
    _roc(roc, figures["curves"]["roc"], figures["auc"])
    _reliability(bins, figures["curves"]["reliability"], figures["ece"])
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def _loss(axes: Any, history: Sequence[Mapping[str, Any]]) -> None:
    for name in LOSSES:
        known = [(epoch, entry[name]) for epoch, entry in enumerate(history, start=1) if entry.get(name) is not None]
        if known:
            axes.plot(*zip(*known, strict=True), marker="o", label=name.replace("_", " "))
            axes.legend()
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(title="loss", xlabel="epoch", ylabel="nats per example")


def _roc(axes: Any, curve: Mapping[str, Sequence[float]], auc: float) -> None:
    axes.plot(curve["false_positive_rate"], curve["true_positive_rate"])
    axes.plot([0, 1], [0, 1], linestyle=":", color="grey")
    axes.set(title=f"ROC, AUC {auc:.4f}", xlabel="false positive rate", ylabel="true positive rate")


def _reliability(axes: Any, bins: Mapping[str, Sequence[float]], ece: float) -> None:
    top = max(*bins["predicted"], *bins["observed"])
    axes.plot([0, top], [0, top], linestyle=":", color="grey")
    axes.plot(bins["predicted"], bins["observed"], marker="o")
    axes.set(title=f"calibration, ECE {ece:.4f}", xlabel="predicted click rate", ylabel="observed click rate")
