"""The two towers' parts that a request needs, in numpy: the user's vector, and the pre-ranker over it.

    pre-ranker's first layer   W [u * v, v, u . v / d] = A(u) v      u and v scaled by s = sqrt(d)
    A(u) = s^2 W_product diag(u) + s W_item + (s^2 / d) w_mean u'

so that one matrix per request replaces the products and their columns for every candidate.
"""

from __future__ import annotations

import numpy as np

from contracts.features.encoding import Encoded
from models.inference.block_inputs import BlockInputs
from models.inference.numpy_mlp import NumpyMlp
from models.inference.packed_matrix import PackedMatrix
from models.networks.tower_pre_ranker import PreRanker
from models.networks.two_tower import TwoTower

SHORTEST = 1e-12  # of a vector that is brought to length 1, as torch has it


class UserTower:
    """The user's vector of trained towers."""

    def __init__(self, towers: TwoTower) -> None:
        self._inputs = BlockInputs(towers.embedding.request, towers.embedding)
        self._mlp = NumpyMlp(towers.user)

    def __call__(self, request: Encoded) -> np.ndarray:
        """[1, ...] -> [d], of length 1."""
        found = self._mlp.after_first(self._mlp.request_part(self._inputs(request.ids, request.dense)))[0]
        return found / max(float(np.sqrt(found @ found)), SHORTEST)


class FoldedPreRanker:
    """A trained pre-ranker."""

    def __init__(self, network: PreRanker) -> None:
        self._mlp, self._scale = NumpyMlp(network.mlp), np.float32(network.scale)
        size = len(self._mlp.candidate) // 2
        product, item, mean = np.split(self._mlp.candidate, (size, 2 * size))
        self._paired = self._scale * self._scale * (product + mean / np.float32(size))
        self._item = self._scale * item

    def matrix(self, user: np.ndarray) -> tuple[PackedMatrix, np.ndarray]:
        """A(u)' [d, H] and the request's part [1, H] of the first layer, for u [d]."""
        folded = user[:, None] * self._paired
        folded += self._item
        return PackedMatrix(folded), self._mlp.request_part((self._scale * user)[None])

    def logits(self, folded: tuple[PackedMatrix, np.ndarray], items: np.ndarray) -> np.ndarray:
        """float32 [K] of item vectors [K, d]."""
        return self._mlp.of_sum(None, folded[1], items, folded[0])[:, 0]
