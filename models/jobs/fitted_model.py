"""A trained network before it has files: what calibration, evaluation and the summary are made from."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from torch import nn

from contracts.summaries.train import FitFigures, WarmStartFigures
from models.training.loop import FitResult

Network = TypeVar("Network", bound=nn.Module)


class FittedModel(NamedTuple, Generic[Network]):
    """`name` is that of its folder; `warm_start` None where it began cold."""

    name: str
    network: Network
    fit: FitResult
    warm_start: WarmStartFigures | None

    def figures(self, digest: str) -> FitFigures:
        """`digest` is that of models/jobs/resume.py."""
        fit = self.fit
        return FitFigures(
            seconds=fit.seconds, rows_per_second=fit.rows_per_second, epochs=len(fit.history),
            best_epoch=fit.best_epoch, history=tuple(fit.history), warm_start=self.warm_start, digest=digest,
        )
