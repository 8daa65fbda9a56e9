"""An MLP of one request in numpy: weights laid out for the products, sums and ReLUs in place.

    first layer   x W_candidate' + (W_request r + b)       the second term once per request
"""

from __future__ import annotations

import numpy as np
from torch import nn

from models.layers.mlp import Mlp


class NumpyMlp:
    """Of a trained network; batch normalisation must have been folded into its layers."""

    def __init__(self, mlp: Mlp) -> None:
        assert mlp.norms is None
        self._request, self._bias = mlp.first.request.detach().numpy(), mlp.first.bias.detach().numpy()
        self.request_weights = self._request.T
        self.candidate = np.ascontiguousarray(mlp.first.candidate.detach().numpy().T)
        linears = [layer for layer in mlp.rest if isinstance(layer, nn.Linear)]
        self._rest = [(np.ascontiguousarray(layer.weight.detach().numpy().T), layer.bias.detach().numpy())
                      for layer in linears]

    def request_part(self, request: np.ndarray) -> np.ndarray:
        """[1 or B, R] -> [1 or B, H], the bias included."""
        return request @ self._request.T + self._bias

    def __call__(self, request_part: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """[1 or B, H] and [B, C] -> [B, out]."""
        hidden = candidate @ self.candidate
        hidden += request_part
        return self.after_first(hidden)

    def slopes(self, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first layer's outputs [B, H] of a network with one output -> that, [B, 1], and its slope along each of
        them, [B, H]."""
        masks = []
        for weight, bias in self._rest:
            masks.append(hidden > 0)
            hidden = np.maximum(hidden, 0.0) @ weight + bias
        slope = np.ones((len(hidden), 1), dtype=np.float32)
        for (weight, _), mask in zip(reversed(self._rest), reversed(masks), strict=True):
            slope = (slope @ weight.T) * mask
        return hidden, slope

    def input_slopes(self, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Along the request's inputs [B, R] and the candidate's [B, C]."""
        _, slope = self.slopes(hidden)
        return slope @ self._request, slope @ self.candidate.T

    def after_first(self, hidden: np.ndarray) -> np.ndarray:
        """The first layer's outputs [B, H], which are overwritten -> [B, out]."""
        for weight, bias in self._rest:
            np.maximum(hidden, 0.0, out=hidden)
            hidden = hidden @ weight
            hidden += bias
        return hidden
