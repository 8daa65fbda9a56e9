"""How training of a retrieval model ends: by NDCG@10 of the validation holdout, the best epoch kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from models.evaluation import full_ranking
from models.interactions.evaluate import rank
from models.interactions.retriever import Retriever
from models.interactions.splits import Holdout

State = TypeVar("State")


def validation_ndcg(model: Retriever, holdout: Holdout) -> float:
    """Mean gain of the targets among the 10 best, each target by itself."""
    return full_ranking.mean_gain(rank(model, holdout, lists=0).rank, 10)


class BestEpoch(Generic[State]):
    """`state` is what was taken at the epoch of the highest figure; `patience` counts epochs."""

    state: State

    def __init__(self, patience: int) -> None:
        self.patience, self.figure, self.epoch = patience, -1.0, 0

    def goes_on(self, epoch: int, figure: float, take: Callable[[], State]) -> bool:
        """Takes the state where the figure is the highest so far; False once that is `patience` epochs ago."""
        if figure > self.figure:
            self.figure, self.epoch, self.state = figure, epoch, take()
        return epoch - self.epoch < self.patience
