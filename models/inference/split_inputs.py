"""What a split ranker reads of a request and of its candidates: rows of numbers, as the embedding joins them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from contracts.features.encoding import Encoded
from models.inference.block_inputs import BlockInputs
from models.inference.number_columns import NumberColumns
from models.layers.embedding import FusedEmbedding
from models.layers.item_prior import ItemPrior


class Slopes(NamedTuple):
    """Of one block: the network's inputs [1 or B, X], and how the logit changes along them, [B, X]."""

    inputs: np.ndarray
    slopes: np.ndarray


class Inputs:
    """Both blocks of a network with a fused embedding as rows of numbers."""

    def __init__(self, embedding: FusedEmbedding, prior: ItemPrior) -> None:
        self.embedding = embedding
        self.request_reader = BlockInputs(embedding.request, embedding)
        self.candidate_reader = BlockInputs(embedding.candidate, embedding)
        self._request_numbers = NumberColumns(embedding.request_encoding)
        self._candidate_numbers = NumberColumns(embedding.candidate_encoding)
        self._prior = None if prior.slot is None else (prior.slot.start, prior.logit.numpy())

    def request(self, request: Encoded) -> np.ndarray:
        return self.request_reader(request.ids, *self._request_numbers(request.dense))

    def candidate(self, request_ids: np.ndarray, candidate: Encoded) -> np.ndarray:
        products, rates = self.products(request_ids, candidate.ids), self.rates(request_ids, candidate.ids)
        return self.candidate_reader(candidate.ids, *products, *self._candidate_numbers(candidate.dense), *rates)

    def products(self, request_ids: np.ndarray, candidate_ids: np.ndarray) -> list[np.ndarray]:
        """Those of crosses, by the network's own layer: [K, P], or nothing."""
        layer = self.embedding.products
        return [] if layer is None else [_computed(layer, request_ids, candidate_ids)]

    def rates(self, request_ids: np.ndarray, candidate_ids: np.ndarray) -> list[np.ndarray]:
        """Pair rates, by the network's own layer: [K, P], or nothing."""
        layer = self.embedding.pair_rates
        return [] if layer is None else [_computed(layer, request_ids, candidate_ids)]

    @property
    def prior_column(self) -> int | None:
        """The column of the candidate's ids that names the item, None where there is no prior."""
        return None if self._prior is None else self._prior[0]

    def prior(self, candidate_ids: np.ndarray) -> np.ndarray | float:
        """[K] logits of the items' popularity, 0 without items."""
        return 0.0 if self._prior is None else self._prior[1].take(candidate_ids[:, self._prior[0]])


@torch.inference_mode()
def _computed(layer: nn.Module, *ids: np.ndarray) -> np.ndarray:
    found: np.ndarray = layer(*map(torch.from_numpy, ids)).numpy()
    return found
