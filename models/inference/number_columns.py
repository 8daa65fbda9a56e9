"""What models/layers/number_encoding.py adds to the dense inputs, in numpy and with the network's own weights."""

from __future__ import annotations

import numpy as np
from torch import nn

from models.layers.number_encoding import HEIGHT, Periodic, PiecewiseLinear


class NumberColumns:
    """dense [B, n] -> the dense inputs of a block as a ranker reads them, a list of arrays [B, ...]."""

    def __init__(self, encoding: nn.Module | None) -> None:
        self._encoding = encoding

    def __call__(self, dense: np.ndarray) -> list[np.ndarray]:
        if isinstance(self._encoding, PiecewiseLinear):
            return [dense, _ramps(self._encoding, dense)]
        if isinstance(self._encoding, Periodic):
            return [dense, _waves(self._encoding, dense)]
        return [dense]


def _ramps(encoding: PiecewiseLinear, dense: np.ndarray) -> np.ndarray:
    found = dense[:, encoding.source.numpy()]
    found -= encoding.starts.numpy()
    found *= encoding.steepness.numpy()
    return np.clip(found, 0.0, 1.0, out=found)


def _waves(encoding: Periodic, dense: np.ndarray) -> np.ndarray:
    turns = dense[:, :, None] * (np.float32(2 * np.pi) * encoding.frequencies.detach().numpy())
    found = np.concatenate([np.sin(turns), np.cos(turns)], axis=2).reshape(len(dense), -1)
    found *= np.float32(HEIGHT)
    return found
