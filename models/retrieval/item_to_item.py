"""Item-to-item models: the score of an item is the sum of its weights from the items of the history.

    cosine   w_ij = n_ij / sqrt(n_i n_j), w_ii = 0; n_ij users took both, n_i took i (Sarwar et al., WWW 2001)
    EASE     w_ij = -P_ij / P_jj, w_ii = 0; P = (X'X + l2 I)^-1, in closed form      (Steck, WWW 2019)

Who the user is plays no part, so that a new user is served from the first action on.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor

from contracts.errors import ConfigError
from contracts.features.feature_spec import FIRST_ID
from models.interactions.action_matrix import action_matrix, product, sparse
from models.interactions.interactions import Interactions
from models.interactions.retriever import Fitted
from models.interactions.splits import Split

KEPT = 100  # weights of an item in a bundle
BLOCK = 1024  # items whose weights are there at once
MOST_ITEMS = 30_000  # a dense matrix of 3.6 GB, of which the inverse needs two


class ItemCosine:
    """Weights stay sparse."""

    def fit(self, split: Split) -> Fitted:
        """One sparse product."""
        start = time.perf_counter()
        actions = action_matrix(split.train)
        users = actions.indices()[1].bincount(minlength=split.train.table)
        scale = users.float().clamp(min=1).rsqrt()
        both = product(actions.T, actions)
        row, column = both.indices()
        weight = both.values() * scale[row] * scale[column] * (row != column)
        self.weights = sparse(both.indices(), weight, *both.shape)
        return Fitted(time.perf_counter() - start, 0.0, 1)

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """[U, table]."""
        return product(action_matrix(history), self.weights).to_dense()

    def weights_of(self, items: Tensor) -> Tensor:
        """Ids [n] -> [n, table]."""
        chosen = torch.stack([torch.arange(len(items)), items])
        return product(sparse(chosen, torch.ones(len(items)), len(items), len(self.weights)), self.weights).to_dense()


class Ease:
    """`l2` in actions. Raises ConfigError for more items than a dense matrix of all pairs is sensible for."""

    def __init__(self, l2: float = 250.0) -> None:
        self.l2 = l2

    def fit(self, split: Split) -> Fitted:
        """One inverse of [items, items] in float32."""
        start, items = time.perf_counter(), split.train.table - FIRST_ID
        if items > MOST_ITEMS:
            raise ConfigError(f"EASE inverts a matrix of all pairs of items: {items:,} items, the limit is "
                              f"{MOST_ITEMS:,}; leave ease out and take item_cosine, which stays sparse")
        actions = action_matrix(split.train)
        gram = product(actions.T, actions).to_dense()[FIRST_ID:, FIRST_ID:].contiguous()
        gram.diagonal().add_(self.l2)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(gram))
        weights = torch.zeros(split.train.table, split.train.table)
        weights[FIRST_ID:, FIRST_ID:] = inverse.div_(-inverse.diagonal().clone())
        weights.fill_diagonal_(0.0)
        self.weights = weights
        return Fitted(time.perf_counter() - start, 0.0, 1)

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """[U, table]."""
        return action_matrix(history) @ self.weights

    def weights_of(self, items: Tensor) -> Tensor:
        """Ids [n] -> [n, table]."""
        return self.weights[items]


class NearestItems:
    """Of `model` the KEPT largest positive weights of each item, as a bundle carries them: `items` int32 [table, KEPT],
    0 where there are fewer, and their `weights` float32."""

    def __init__(self, model: ItemCosine | Ease) -> None:
        self.model = model

    def fit(self, split: Split) -> Fitted:
        """The model's, and a selection."""
        fitted, table = self.model.fit(split), split.train.table
        kept = [self.model.weights_of(part).topk(min(KEPT, table)) for part in torch.arange(table).split(BLOCK)]
        weights = torch.cat([part.values for part in kept]).float().clamp(min=0)
        self.items = torch.where(weights > 0, torch.cat([part.indices for part in kept]), 0).int()
        self.weights = weights
        return fitted

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """[U, table]."""
        table = len(self.items)
        row, place = self.weights.nonzero().T
        column, weight = self.items[row, place].long(), self.weights[row, place]
        order = (row * table + column).argsort()
        chosen = sparse(torch.stack([row[order], column[order]]), weight[order], table, table)
        return product(action_matrix(history), chosen).to_dense()
