"""The trivial rivals: what was taken most often, in the whole of training or of late; the same for every user."""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor

from contracts.errors import DataError
from models.interactions.interactions import Interactions
from models.interactions.retriever import Fitted
from models.interactions.splits import Split

WEEK = 7 * 24 * 3600 * 1_000_000


class Popularity:
    """Score = training actions of the item."""

    def fit(self, split: Split) -> Fitted:
        """Counts."""
        start = time.perf_counter()
        self.counts = torch.from_numpy(split.train.counts()).float()
        return Fitted(time.perf_counter() - start, 0.0, 1)

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """[U, table]."""
        return self.counts.repeat(len(users), 1)


class RecentPopularity:
    """Score = training actions of the item within `window` microseconds before the last one."""

    def __init__(self, window: int = WEEK) -> None:
        self.window = window

    def fit(self, split: Split) -> Fitted:
        """Counts. Raises DataError where the log has no times."""
        start = time.perf_counter()
        times = split.train.times
        if times is None:
            raise DataError("recent popularity needs times, and this log has none; leave recent_popularity out")
        late = times > times.max(initial=0) - self.window
        self.counts = torch.from_numpy(np.bincount(split.train.items[late], minlength=split.train.table)).float()
        return Fitted(time.perf_counter() - start, 0.0, 1)

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """[U, table]."""
        return self.counts.repeat(len(users), 1)
