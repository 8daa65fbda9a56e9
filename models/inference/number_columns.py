"""What models/layers/number_encoding.py adds to the dense inputs, in numpy and with the network's own weights."""

from __future__ import annotations

from typing import cast

import numpy as np
from torch import nn

from models.layers.number_encoding import HEIGHT, NumberEncoding, Periodic, PiecewiseLinear

Places = slice | np.ndarray
ALL = slice(None)


class NumberColumns:
    """dense [B, n] -> the dense inputs of a block as a ranker reads them, a list of arrays [B, ...]; `only` the dense
    columns [m], and what is made of each, in that order."""

    def __init__(self, encoding: nn.Module | None, only: np.ndarray | None = None) -> None:
        self._encoding = encoding
        self._only: Places = ALL if only is None else only
        self._made: Places = ALL if only is None else _made_of(encoding, only)

    def places(self, numbers: int) -> np.ndarray:
        """Of what is returned among the whole block's, of `numbers` dense columns."""
        made = 0 if self._encoding is None else len(cast(NumberEncoding, self._encoding).columns)
        return np.concatenate([np.arange(numbers)[self._only], numbers + np.arange(made)[self._made]])

    def __call__(self, dense: np.ndarray) -> list[np.ndarray]:
        plain = dense if self._only is ALL else dense[:, self._only]
        if isinstance(self._encoding, PiecewiseLinear):
            return [plain, _ramps(self._encoding, dense, self._made)]
        if isinstance(self._encoding, Periodic):
            return [plain, _waves(self._encoding, plain, self._only)]
        return [plain]


def _made_of(encoding: nn.Module | None, only: np.ndarray) -> np.ndarray:
    """Which further inputs are made of these dense columns."""
    columns = np.array([] if encoding is None else cast(NumberEncoding, encoding).columns)
    found = [np.flatnonzero(columns == one) for one in only.tolist()]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _ramps(encoding: PiecewiseLinear, dense: np.ndarray, made: Places) -> np.ndarray:
    found = dense[:, encoding.source.numpy()[made]]
    found -= encoding.starts.numpy()[made]
    found *= encoding.steepness.numpy()[made]
    return np.clip(found, 0.0, 1.0, out=found)


def _waves(encoding: Periodic, dense: np.ndarray, only: Places) -> np.ndarray:
    """Of the columns `only`, which `dense` is."""
    turns = dense[:, :, None] * (np.float32(2 * np.pi) * encoding.frequencies.detach().numpy()[only])
    found = np.concatenate([np.sin(turns), np.cos(turns)], axis=2).reshape(len(dense), -1)
    found *= np.float32(HEIGHT)
    return found
