"""What every retrieval model over interactions can do: be fitted, and score the whole catalogue for users."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from torch import Tensor

from models.interactions.interactions import Interactions
from models.interactions.splits import Split


class Fitted(NamedTuple):
    """`rows_per_second`: training rows (predicted actions) a second, 0 where a model counts in one pass; `rounds`:
    epochs until the best."""

    seconds: float
    rows_per_second: float
    rounds: int


class Retriever(Protocol):
    """One seed gives one fit. `fit` reads the training actions, and the validation holdout where it stops early."""

    def fit(self, split: Split) -> Fitted:
        """Once, before scores are asked for."""

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """float [U, table], the caller's to change: `users` [U] as the log numbers them, `history` theirs, row by
        row."""
