"""What a split ranker reads of a request and of its candidates: rows of numbers, as the embedding joins them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from contracts.features.encoding import Encoded
from models.inference.block_inputs import BlockInputs
from models.layers.embedding import FusedEmbedding
from models.layers.item_prior import ItemPrior


class Slopes(NamedTuple):
    """Of one block: the network's inputs [1 or B, X], and how the logit changes along them, [B, X]."""

    inputs: np.ndarray
    slopes: np.ndarray


class Inputs:
    """Both blocks of a network with a fused embedding as rows of numbers."""

    def __init__(self, embedding: FusedEmbedding, prior: ItemPrior) -> None:
        self._embedding = embedding
        self.request_reader = BlockInputs(embedding.request, embedding)
        self.candidate_reader = BlockInputs(embedding.candidate, embedding)
        self._prior = None if prior.slot is None else (prior.slot.start, prior.logit.numpy())

    def request(self, request: Encoded) -> np.ndarray:
        return self.request_reader(request.ids, request.dense)

    def candidate(self, request_ids: np.ndarray, candidate: Encoded) -> np.ndarray:
        """Products and pair rates are computed by the network's own layers."""
        before, after = self._embedding.products, self._embedding.pair_rates
        if before is None and after is None:
            return self.candidate_reader(candidate.ids, candidate.dense)
        with torch.inference_mode():
            ids = torch.from_numpy(request_ids), torch.from_numpy(candidate.ids)
            products = [before(*ids).numpy()] if before is not None else []
            rates = [after(*ids).numpy()] if after is not None else []
        return self.candidate_reader(candidate.ids, *products, candidate.dense, *rates)

    def prior(self, candidate: Encoded) -> np.ndarray | float:
        """[K] logits of the items' popularity, 0 without items."""
        return 0.0 if self._prior is None else self._prior[1].take(candidate.ids[:, self._prior[0]])
