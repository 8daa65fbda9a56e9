"""Each item's most similar items, by cosine of the item tower's vectors; the item-to-item channel reads them."""

from __future__ import annotations

import numpy as np

from contracts.config.stages import Retrieve
from serving.bundle import item_index

NOBODY = -1
CHUNK = 1024


def neighbours(vectors: np.ndarray, settings: Retrieve) -> np.ndarray:
    """int32 [I, settings.neighbours], most similar first, never the item itself, padded right with -1."""
    count, width = len(vectors), settings.neighbours
    table = np.full((count, width), NOBODY, dtype=np.int32)
    if count < 2:
        return table
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = np.ascontiguousarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
    index = item_index.build(directions, settings)
    kept = min(width, count - 1)
    for start in range(0, count, CHUNK):
        rows = np.arange(start, min(start + CHUNK, count))
        hits = item_index.search_many(index, directions[rows], kept + 1)[1]
        table[rows, :kept] = _without_self(hits, rows)
    return table


def _without_self(hits: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """[B, k + 1] -> [B, k]: drops the item where it is a hit (twins may have pushed it out), else the last hit."""
    drop = hits == rows[:, None]
    drop[~drop.any(axis=1), -1] = True
    return hits[~drop].reshape(len(hits), -1)
