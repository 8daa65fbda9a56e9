"""ALS, BPR and LightGCN asked by the history alone, as a channel of the funnel is asked: users need not be known.

    als         the user's least squares, as in training
    light_gcn   u = sum_i a_i / sqrt(n),  a_i = sum over k < K of E_k,i / ((K + 1) sqrt(n_i)): the trained vector less
                the part that is the user's own, E_0,u / (K + 1)
    bpr         u = mean of a_i,  a = Y W;  W by least squares of the trained users on the mean of what they took
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor

from models.interactions.action_matrix import action_matrix
from models.interactions.interactions import Interactions
from models.interactions.retriever import Fitted
from models.interactions.splits import Split
from models.retrieval.factorisation import Als, Bpr
from models.retrieval.light_gcn import LightGcn
from models.retrieval.user_states import Arrays, Solved, Summed

RIDGE = 1e-6  # of the mean diagonal, so that a direction nobody took is no obstacle


class FoldedIn:
    """`items` float32 [table, d] and `state` after `fit`."""

    def __init__(self, model: Als | Bpr | LightGcn) -> None:
        self.model = model
        self.items: np.ndarray
        self.state: Summed | Solved

    def fit(self, split: Split) -> Fitted:
        """The model's, and what folds users in."""
        start = time.perf_counter()
        fitted = self.model.fit(split)
        if isinstance(self.model, Als):
            self.items, self.state = _solved(self.model)
        elif isinstance(self.model, LightGcn):
            self.items = self.model.items.numpy()
            self.state = Summed(self.model.inward.numpy(), 0.5)
        else:
            self.items = self.model.items.numpy()
            self.state = Summed(_regressed(self.model, split.train), 1.0)
        return fitted._replace(seconds=time.perf_counter() - start)

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """[U, table]; a user without history scores all 0."""
        vectors = np.zeros((history.users, self.items.shape[1]), np.float32)
        for row in np.flatnonzero(history.lengths).tolist():
            vectors[row] = self.state(history.of(row))
        return torch.from_numpy(vectors @ self.items.T)

    def arrays(self) -> Arrays:
        """What `user_states.read` reads."""
        return {"items": self.items, **self.state.arrays()}


def _solved(model: Als) -> tuple[np.ndarray, Solved]:
    items = np.array(model.model.item_factors, np.float32)
    wide = items.astype(np.float64)
    gram = wide.T @ wide + model.settings.l2 * np.eye(wide.shape[1])
    return items, Solved(items, gram, model.settings.alpha)


def _regressed(model: Bpr, log: Interactions) -> np.ndarray:
    """[table, d]; the last dimension is the items' own bias, for which every user has a 1."""
    taken = action_matrix(log)
    number = taken.sum(1).to_dense()[:, None]
    known = number[:, 0] > 0
    means = ((taken @ model.items) / number)[known]
    gram = means.T @ means
    gram.diagonal().add_(RIDGE * gram.diagonal().mean())
    inward = model.items @ torch.linalg.solve(gram, means.T @ model.users[known])
    inward[:, -1] = 1.0
    return inward.numpy()
