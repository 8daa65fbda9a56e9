"""Channels of `retrieve.channels` as the retrieval stage asks them: by a vector of the user's, or by weights of items.

Both read what a user took last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from contracts.features.feature_spec import UNKNOWN
from contracts.summaries.bundle import ParityFigures
from models.sequences.user_state import UserState
from serving.bundle import item_index
from serving.bundle.item_index import ItemIndex
from serving.bundle.item_set import ItemSet

UNKNOWN_SCORE = -1e4  # of items that the encoder does not know


@dataclass(frozen=True, eq=False, kw_only=True)
class Channel(ABC):
    """`parity` is None when not checked. `recent` are item rows, newest first."""

    name: str
    parity: ParityFigures | None = None

    @abstractmethod
    def best(self, recent: np.ndarray, count: int, allowed: ItemSet | None, by_value: bool = False) -> np.ndarray:
        """Rows of at most `count` items that the model knows, best first; `by_value` lets the bid count, where scores
        are log probabilities."""

    @abstractmethod
    def scores(self, recent: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """[K], as the trained model gives them; NaN where it has none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SequenceChannel(Channel):
    """Items nearest to the vector that the sequence encoder gives.

    `ids` int32 [I]: how the encoder knows each item, 1 where it does not. `index` is over its items' vectors, ln(bid)
    and UNKNOWN_SCORE.
    """

    state: UserState
    ids: np.ndarray
    index: ItemIndex

    def vector(self, recent: np.ndarray) -> np.ndarray | None:
        """Item rows, newest first -> [d]; None where the encoder knows none of them."""
        known = self.ids[recent]
        known = known[known > UNKNOWN][: self.state.length]
        return self.state(known[::-1].astype(np.int64)) if len(known) else None

    def best(self, recent: np.ndarray, count: int, allowed: ItemSet | None, by_value: bool = False) -> np.ndarray:
        """Rows of at most `count` items that the encoder knows, best first; `by_value` lets the bid count."""
        vector = self.vector(recent)
        if vector is None:
            return np.empty(0, dtype=np.int64)
        query = np.zeros(self.index.vectors.shape[1], dtype=np.float32)
        query[: len(vector)], query[len(vector)], query[len(vector) + 1] = vector, by_value, 1.0
        found = item_index.search(self.index, query, count, allowed)
        return found.rows[found.scores > UNKNOWN_SCORE / 2]

    def scores(self, recent: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """[K]; NaN without a vector."""
        vector = self.vector(recent)
        if vector is None:
            return np.full(len(rows), np.nan)
        return self.index.vectors[rows, : len(vector)] @ vector


@dataclass(frozen=True, eq=False, kw_only=True)
class NearestChannel(Channel):
    """EASE, cosine: weights from the recent items added up.

    `nearest` int32 [I, M] rows of items, -1 where there are fewer; `weights` float32 [I, M].
    """

    nearest: np.ndarray
    weights: np.ndarray

    def best(self, recent: np.ndarray, count: int, allowed: ItemSet | None, by_value: bool = False) -> np.ndarray:
        """By score alone: sums of weights are no log probabilities, so that the bid plays no part."""
        rows, scores = self._sums(recent)
        if allowed is not None:
            kept = allowed.contains(rows)
            rows, scores = rows[kept], scores[kept]
        return rows[np.argsort(-scores, kind="stable")[:count]]

    def scores(self, recent: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """0 for an item that none of the recent ones brings."""
        found, scores = self._sums(recent)
        place = np.searchsorted(found, rows)
        there = np.append(found, -1)[place] == rows
        return np.where(there, np.append(scores, 0.0)[place], 0.0)

    def _sums(self, recent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows ascending, and their scores float64."""
        own = np.unique(recent)
        rows, weights = self.nearest[own].ravel(), self.weights[own].ravel()
        rows, weights = rows[rows >= 0].astype(np.int64), weights[rows >= 0]
        found, place = np.unique(rows, return_inverse=True)
        return found, np.bincount(place, weights, len(found))
