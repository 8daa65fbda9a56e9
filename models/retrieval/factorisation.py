"""Matrix factorisation by the library `implicit`: score = p_user . q_item.

    ALS  weighted least squares over all cells (Hu, Koren & Volinsky, ICDM 2008); a user's vector is solved anew from
         the history, so that it follows what the user did since
    BPR  pairwise ranking by sampled updates (Rendle et al., UAI 2009); a user without training actions scores all 0

Both run on one thread, because the order of parallel updates would not repeat.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from contracts.errors import ConfigError
from contracts.progress import report
from models.interactions.interactions import Interactions
from models.interactions.retriever import Fitted
from models.interactions.splits import Split


class AlsSettings(BaseModel):
    """`alpha`: weight of an action over a cell without one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = Field(64, ge=1)
    l2: float = Field(0.01, ge=0)
    alpha: float = Field(10.0, gt=0)
    rounds: int = Field(15, ge=1)


class BprSettings(BaseModel):
    """`rounds`: passes over the actions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = Field(64, ge=1)
    l2: float = Field(0.01, ge=0)
    learning_rate: float = Field(0.05, gt=0)
    rounds: int = Field(100, ge=1)


class Als:
    """Raises ConfigError where `implicit` is not installed."""

    def __init__(self, settings: AlsSettings, seed: int) -> None:
        self.settings, self.seed = settings, seed

    def fit(self, split: Split) -> Fitted:
        """One seed gives one fit."""
        require_library()
        from implicit.als import AlternatingLeastSquares

        s, start = self.settings, time.perf_counter()
        with _one_blas_thread():
            self.model = AlternatingLeastSquares(
                factors=s.width, regularization=s.l2, alpha=s.alpha, iterations=s.rounds, random_state=self.seed,
                num_threads=1)
            self.model.fit(_cells(split.train), show_progress=False, callback=_round_counter("als", s.rounds))
        seconds = time.perf_counter() - start
        return Fitted(seconds, len(split.train.items) * s.rounds / seconds, s.rounds)

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """[U, table]."""
        with _one_blas_thread():
            solved = self.model.recalculate_user(np.arange(len(users)), _cells(history))
        return torch.from_numpy(np.asarray(solved) @ self.model.item_factors.T)


class Bpr:
    """Raises ConfigError where `implicit` is not installed."""

    def __init__(self, settings: BprSettings, seed: int) -> None:
        self.settings, self.seed = settings, seed

    def fit(self, split: Split) -> Fitted:
        """One seed gives one fit."""
        require_library()
        from implicit.bpr import BayesianPersonalizedRanking

        s, start = self.settings, time.perf_counter()
        model = BayesianPersonalizedRanking(
            factors=s.width, regularization=s.l2, learning_rate=s.learning_rate, iterations=s.rounds,
            random_state=self.seed, num_threads=1)
        model.fit(_cells(split.train), show_progress=False, callback=_round_counter("bpr", s.rounds))
        self.users = torch.from_numpy(np.asarray(model.user_factors)).clone()
        self.users[torch.from_numpy(split.train.lengths == 0)] = 0
        self.items = torch.from_numpy(np.asarray(model.item_factors)).clone()
        seconds = time.perf_counter() - start
        return Fitted(seconds, len(split.train.items) * s.rounds / seconds, s.rounds)

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """[U, table]."""
        return self.users[torch.from_numpy(users)] @ self.items.T


def require_library() -> None:
    """Raises ConfigError where `implicit` is not installed."""
    try:
        import implicit  # noqa: F401
    except ImportError as error:
        raise ConfigError("ALS and BPR come from the library implicit, which is not installed: pip install "
                          "'sluice[retrieval]', or leave als and bpr out") from error


def _one_blas_thread() -> Any:
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, "blas")


def _cells(log: Interactions) -> Any:
    from scipy.sparse import csr_matrix

    cells = csr_matrix((np.ones(len(log.items), np.float32), log.items.astype(np.int32), log.offsets),
                       (log.users, log.table))
    cells.sum_duplicates()
    cells.data[:] = 1.0
    return cells


def _round_counter(name: str, rounds: int) -> Callable[..., None]:
    """For the library's `callback`, whose first argument is the round from 0; the others differ by model."""
    return lambda number, *_: report(f"rounds of {name}", number + 1, rounds)
