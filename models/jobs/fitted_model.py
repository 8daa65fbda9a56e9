"""A trained network before it has files: what calibration, evaluation and the summary are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from torch import nn

from contracts.summaries.train import FitFigures, WarmStartFigures
from models.inference.ensemble import Ensemble
from models.training.loop import FitResult

Network = TypeVar("Network", bound=nn.Module)


class FittedModel(NamedTuple, Generic[Network]):
    """`name` is that of its folder; `warm_start` None where no bundle had it."""

    name: str
    network: Network
    fit: FitResult
    warm_start: WarmStartFigures | None

    @property
    def began_cold(self) -> bool:
        """Though a bundle had it."""
        return self.warm_start is not None and self.warm_start.cold is not None

    def figures(self, digest: str) -> FitFigures:
        """`digest` is that of models/jobs/resume.py."""
        fit = self.fit
        return FitFigures(
            seconds=fit.seconds, rows_per_second=fit.rows_per_second, epochs=len(fit.history),
            best_epoch=fit.best_epoch, history=tuple(fit.history), warm_start=self.warm_start, digest=digest,
        )


def of_members(models: Sequence[FittedModel[nn.Module]]) -> FittedModel[nn.Module]:
    """Their ensemble, on the CPU and in evaluation mode. Epochs are the first member's, seconds of all together, the
    speed and the bias of positions their means."""
    fits = [model.fit for model in models]
    fit = replace(
        fits[0], seconds=sum(fit.seconds for fit in fits),
        rows_per_second=float(np.mean([fit.rows_per_second for fit in fits])),
        position_bias=np.mean([fit.position_bias for fit in fits], axis=0).tolist())
    return models[0]._replace(network=Ensemble(model.network for model in models).eval(), fit=fit)
