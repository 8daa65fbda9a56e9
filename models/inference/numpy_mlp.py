"""An MLP of one request in numpy: weights laid out for the products, sums and ReLUs in place.

    first layer   x W_candidate' + (W_request r + b)       the second term once per request

Where compiled code is, outputs are computed by that (models/inference/mlp_rows.py), slopes and the request's part here.
"""

from __future__ import annotations

import numpy as np
from torch import nn

from models.inference.mlp_rows import compiled
from models.inference.packed_matrix import PackedMatrix
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
        self._candidate = PackedMatrix(self.candidate)
        self.compiled = compiled(len(self._bias), self._rest)

    def request_part(self, request: np.ndarray) -> np.ndarray:
        """[1 or B, R] -> [1 or B, H], the bias included."""
        return request @ self._request.T + self._bias

    def __call__(self, request_part: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """[1 or B, H] and [B, C] -> [B, out]."""
        return self.of_sum(None, request_part, candidate, self._candidate)

    def of_sum(
        self, rows: np.ndarray | None, shift: np.ndarray | None, columns: np.ndarray | None = None,
        matrix: PackedMatrix | None = None,
    ) -> np.ndarray:
        """[B, out] of the first layer's outputs as a sum: rows [B, H] + shift [1 or B, H] + columns [B, C] x matrix
        [C, H], of which one that is None is left out; `rows` may be overwritten."""
        if self.compiled is not None:
            if shift is not None and len(shift) > 1:
                rows, shift = shift if rows is None else rows + shift, None
            return self.compiled(rows, shift, columns, matrix)
        parts = [part for part in (rows, shift) if part is not None]
        if columns is not None and matrix is not None:
            parts.insert(0, columns @ matrix.plain)
        hidden = parts[0]
        for part in parts[1:]:
            hidden += part
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
        """The first layer's outputs [B, H], which may be overwritten -> [B, out]."""
        if self.compiled is not None:
            return self.compiled(hidden, None)
        for weight, bias in self._rest:
            np.maximum(hidden, 0.0, out=hidden)
            hidden = hidden @ weight
            hidden += bias
        return hidden
