"""The inputs of one block in numpy: what `BlockReader.rows` and `join` compute (models/layers/embedding.py), for the
few hundred rows of a request, where a call of torch costs more than its work.

Reads the network's own weights, without a copy.
"""

from __future__ import annotations

import numpy as np

from contracts.features.feature_spec import PADDING
from models.layers.embedding import BlockReader, FusedEmbedding


def columns_at(places: np.ndarray) -> slice | np.ndarray:
    """What reads the columns at `places` [C]: a slice, which copies nothing, where they stand side by side."""
    first = int(places[0]) if len(places) else 0
    return slice(first, first + len(places)) if (places == np.arange(first, first + len(places))).all() else places


class BlockInputs:
    """Of one reader of an embedding."""

    def __init__(self, reader: BlockReader, embedding: FusedEmbedding) -> None:
        self._columns = columns_at(reader.order.numpy())
        self._offsets, self._members = reader.offsets.numpy(), reader.members.numpy()
        self._singles, self._weight = reader.singles, embedding.weight.detach().numpy()
        self.width = reader.width

    def __call__(self, ids: np.ndarray, *further: np.ndarray) -> np.ndarray:
        """ids [B, W] and the inputs that follow the slots -> [B, width]."""
        ordered = ids[:, self._columns]
        rows = np.where(ordered == PADDING, 0, ordered + self._offsets)
        vectors = self._weight.take(rows, axis=0)
        parts = [vectors[:, : self._singles].reshape(len(ids), -1), *further]
        if self._singles < rows.shape[1]:
            parts.insert(1, self._means(rows[:, self._singles :], vectors[:, self._singles :]))
        return np.concatenate(parts, axis=1)

    def _means(self, rows: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Over the columns of each slot of several that hold no padding."""
        present = (rows != PADDING).astype(np.float32)
        counts = np.maximum(present @ self._members.T, np.float32(1.0))
        return ((self._members @ vectors) / counts[:, :, None]).reshape(len(rows), -1)
