"""Channels of `retrieve.channels` as the retrieval stage asks them: by a vector of the user's, by weights of items, or
by counts that are the same for all. The first two read what a user took last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from contracts.features.feature_spec import UNKNOWN
from contracts.summaries.bundle import ParityFigures
from models.retrieval.user_states import State
from serving.bundle import item_index
from serving.bundle.item_index import ItemIndex
from serving.bundle.item_set import ItemSet
from serving.histories.recent_events import RecentEvents

UNKNOWN_SCORE = -1e4  # of items that the model does not know


@dataclass(frozen=True, eq=False, kw_only=True)
class Channel(ABC):
    """`parity` is None when not checked. `recent` are item rows, newest first; `events` what is told of them, for those
    who read it."""

    name: str
    parity: ParityFigures | None = None

    @property
    def reads_history(self) -> bool:
        """Whether it has nothing to say without recent items."""
        return True

    @abstractmethod
    def best(
        self, recent: np.ndarray, count: int, allowed: ItemSet | None, by_value: bool = False,
        events: RecentEvents | None = None,
    ) -> np.ndarray:
        """Rows of at most `count` items that the model knows, best first; `by_value` lets the bid count, where scores
        are log probabilities."""

    @abstractmethod
    def scores(self, recent: np.ndarray, rows: np.ndarray, events: RecentEvents | None = None) -> np.ndarray:
        """[K], as the trained model gives them; NaN where it has none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorChannel(Channel):
    """Items nearest to the vector that `state` gives of the recent ones: sequence encoders, factorisations.

    `ids` int32 [I]: how the model knows each item, 1 where it does not. `index` is over its items' vectors, ln(bid) and
    UNKNOWN_SCORE. `log_probabilities`: what scores are, so that ln(bid) may be added to them. `gaps`: whether `state`
    reads the times of events.
    """

    state: State
    ids: np.ndarray
    index: ItemIndex
    log_probabilities: bool = True
    gaps: bool = False

    def vector(self, recent: np.ndarray, events: RecentEvents | None = None) -> np.ndarray | None:
        """Item rows, newest first -> [d]; None where the model knows none of them."""
        known = self.ids[recent]
        places = np.flatnonzero(known > UNKNOWN)[: self.state.length]
        if not len(places):
            return None
        items = known[places][::-1].astype(np.int64)
        return self.state(items, None if events is None else events.at(places).inputs(self.gaps))

    def best(
        self, recent: np.ndarray, count: int, allowed: ItemSet | None, by_value: bool = False,
        events: RecentEvents | None = None,
    ) -> np.ndarray:
        vector = self.vector(recent, events)
        if vector is None:
            return np.empty(0, dtype=np.int64)
        query = np.zeros(self.index.vectors.shape[1], dtype=np.float32)
        bid_weight = by_value and self.log_probabilities
        query[: len(vector)], query[len(vector)], query[len(vector) + 1] = vector, bid_weight, 1.0
        found = item_index.search(self.index, query, count, allowed)
        return found.rows[found.scores > UNKNOWN_SCORE / 2]

    def scores(self, recent: np.ndarray, rows: np.ndarray, events: RecentEvents | None = None) -> np.ndarray:
        """[K]; NaN without a vector."""
        vector = self.vector(recent, events)
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

    def best(
        self, recent: np.ndarray, count: int, allowed: ItemSet | None, by_value: bool = False,
        events: RecentEvents | None = None,
    ) -> np.ndarray:
        """By score alone: sums of weights are no log probabilities, so that the bid plays no part."""
        rows, scores = self._sums(recent)
        if allowed is not None:
            kept = allowed.contains(rows)
            rows, scores = rows[kept], scores[kept]
        return rows[np.argsort(-scores, kind="stable")[:count]]

    def scores(self, recent: np.ndarray, rows: np.ndarray, events: RecentEvents | None = None) -> np.ndarray:
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


@dataclass(frozen=True, eq=False, kw_only=True)
class CountChannel(Channel):
    """The same items for everybody: `counts` float32 [I], those above 0 from the highest down."""

    counts: np.ndarray

    @property
    def reads_history(self) -> bool:
        return False

    @cached_property
    def _order(self) -> np.ndarray:
        order = np.argsort(-self.counts, kind="stable")
        return order[: np.count_nonzero(self.counts > 0)]

    def best(
        self, recent: np.ndarray, count: int, allowed: ItemSet | None, by_value: bool = False,
        events: RecentEvents | None = None,
    ) -> np.ndarray:
        """By the count alone, read only as far as needed."""
        order, scan = self._order, 2 * count
        if allowed is None:
            return order[:count]
        if allowed.count**2 < count * len(order):
            rows = allowed.rows()
            rows = rows[rows < len(self.counts)]
            rows = rows[self.counts[rows] > 0]
            return rows[np.argsort(-self.counts[rows], kind="stable")[:count]]
        while True:
            rows = order[:scan]
            rows = rows[allowed.contains(rows)]
            if len(rows) >= count or scan >= len(order):
                return rows[:count]
            scan = 4 * scan or 1

    def scores(self, recent: np.ndarray, rows: np.ndarray, events: RecentEvents | None = None) -> np.ndarray:
        """The counts."""
        return self.counts[rows]
