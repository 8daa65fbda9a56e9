"""Weights of the synthetic world's networks as plain arrays, and what is computed of them in straight lines; apart from
models/inference, so that a slow step there shows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor, nn

from models.layers.embedding import BlockReader, FusedEmbedding
from models.layers.mlp import Mlp


class Layers(NamedTuple):
    """Weights of an MLP, [in, out] and [out] each."""

    first: np.ndarray
    bias: np.ndarray
    rest: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, mlp: Mlp, candidate: bool) -> Layers:
        """`candidate` says which half of the first layer is `first`."""
        first = mlp.first.candidate if candidate else mlp.first.request
        linears = [layer for layer in mlp.rest if isinstance(layer, nn.Linear)]
        return cls(*(plain(first.T), plain(mlp.first.bias)),
                   [(plain(layer.weight.T), plain(layer.bias)) for layer in linears])

    def behind(self, hidden: np.ndarray) -> np.ndarray:
        """The outputs of the layers that follow the first's, [K, out]."""
        for weight, bias in self.rest:
            np.maximum(hidden, 0.0, out=hidden)
            hidden = hidden @ weight
            hidden += bias
        return hidden


class Look(NamedTuple):
    """How the ids of a request's block become a network's inputs: columns of one id first, then the history's."""

    weight: np.ndarray
    order: np.ndarray
    offsets: np.ndarray
    singles: int

    @classmethod
    def of(cls, reader: BlockReader, embedding: FusedEmbedding) -> Look:
        return cls(plain(embedding.weight), reader.order.numpy(), reader.offsets.numpy(), reader.singles)

    def inputs(self, ids: np.ndarray, dense: np.ndarray) -> np.ndarray:
        """[1, W] and [1, N] -> [1, X]; the world's histories are full."""
        vectors = self.weight.take(ids[0, self.order] + self.offsets, axis=0)
        mean = vectors[self.singles :].mean(axis=0)
        return np.concatenate([vectors[: self.singles].reshape(-1), mean, dense[0]])[None]


def look_and_layers(embedding: FusedEmbedding, mlp: Mlp) -> tuple[Look, Layers]:
    return Look.of(embedding.request, embedding), Layers.of(mlp, candidate=False)


def plain(weights: Tensor) -> np.ndarray:
    return np.ascontiguousarray(weights.detach().numpy())


def sigmoid(logits: np.ndarray) -> np.ndarray:
    found: np.ndarray = 1.0 / (1.0 + np.exp(-logits.astype(np.float64)))
    return found
