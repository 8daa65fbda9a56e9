"""Maximal marginal relevance: J. Carbonell, J. Goldstein, "The Use of MMR, Diversity-Based Reranking for Reordering
Documents and Producing Summaries", 1998.

    next = argmax over the rest of  (1 - lambda) relevance(i) - lambda max over the chosen j of max(0, cosine(i, j))

Negative similarity counts as none, so that the marginal relevance of a slate never rises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Diverse(NamedTuple):
    """`order` [n] positions in the input; `score` [n] the marginal relevance each was chosen with."""

    order: np.ndarray
    score: np.ndarray


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1; a zero row stays zero and is similar to nothing."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)


def mmr(
    relevance: np.ndarray, vectors: np.ndarray, rows: np.ndarray, slots: int, diversity: float,
    closed_by: Callable[[int], np.ndarray] | None = None,
) -> Diverse:
    """relevance [K], vectors [K, d], item rows [K] -> at most `slots` items; `diversity` is lambda, 0 the plain order.
    `closed_by` hears of each position that is taken, and says which ones, bool [K], may come no more.

    Ties go to the smaller item row. O(slots K d).
    """
    by_row = np.argsort(rows, kind="stable")
    directions = unit(vectors[by_row].astype(np.float32))
    gain = (1.0 - diversity) * relevance[by_row].astype(np.float64)
    nearest = np.zeros(len(rows))
    order, score = [], []
    for _ in range(min(slots, len(rows))):
        marginal = gain - diversity * nearest
        best = int(np.argmax(marginal))
        if gain[best] == -np.inf:
            break
        order.append(best)
        score.append(marginal[best])
        nearest = np.maximum(nearest, directions @ directions[best])
        gain[best] = -np.inf
        if closed_by is not None:
            gain[closed_by(int(by_row[best]))[by_row]] = -np.inf
    return Diverse(by_row[np.array(order, dtype=np.int64)], np.array(score))
