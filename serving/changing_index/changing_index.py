"""Maximum inner product search over items that change: the bundle's index, changed where it lies.

A search may see an item's vector as soon as it is put, and whether it may be found once all of a batch are published.
Items that may not be found keep their place, for they come back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from serving.bundle import item_index
from serving.bundle.best_first import best_first
from serving.bundle.item_index import NO_HITS, Hits, ItemIndex
from serving.bundle.item_set import ItemSet
from serving.changing_index.changing_set import ChangingSet
from serving.changing_index.exact_vectors import ExactVectors
from serving.changing_index.listed_vectors import ListedVectors

SCORED_AT_ONCE = 16_384
QUERIES = 16  # of the latest, to measure recall with


class ChangingIndex:
    """`vectors` [size, d] of all items, those of `base` first, whose index is from now on this one's. One thread
    changes, all search; `shown` is who may be found."""

    def __init__(self, base: ItemIndex, vectors: np.ndarray) -> None:
        self.vectors, self._exact_up_to = vectors, base.exact_up_to
        self._held = ExactVectors(len(base), vectors) if base.exact else ListedVectors(base, vectors)
        self._shown = ChangingSet(np.arange(len(vectors)) < len(base))
        self.asked: deque[np.ndarray] = deque(maxlen=QUERIES)
        self.shown = self._taken()

    def show(self, rows: np.ndarray, shown: np.ndarray) -> None:
        """Whether each of the items may be found, once it is published."""
        self._shown.put(rows, shown)

    def put(self, rows: np.ndarray) -> None:
        """Items whose vectors are other ones now."""
        if len(rows):
            self._held.put(np.unique(rows))

    def set_column(self, rows: np.ndarray, column: int, values: np.ndarray) -> None:
        """One dimension of items' vectors."""
        self.vectors[rows, column] = values
        self.put(rows)

    def publish(self) -> None:
        self.shown = self._taken()

    def _taken(self) -> ItemSet:
        found = self._shown.taken()
        _ = found.count  # kept: counted once, and not by the first request
        self._held.publish(found)
        return found

    def search(self, query: np.ndarray, k: int, allowed: ItemSet | None = None) -> Hits:
        """The k best items that are shown, and `allowed` where there is such a set, for one query [d]."""
        self.asked.append(query)
        shown = self.shown
        open_ = shown if allowed is None or allowed is shown else allowed & shown
        k = min(k, open_.count)
        if k == 0:
            return NO_HITS
        if open_ is not shown and open_.count <= self._exact_up_to:
            return item_index.exact_search(self.vectors, query, k, open_.rows())
        return self._held.search(query, k, open_)

    def recall(self, query: np.ndarray, k: int, wait: Callable[[], None] = lambda: None) -> float:
        """Share of a search's hits that score as high as the k-th best item that is shown; will `wait` before every
        SCORED_AT_ONCE of them, and raises what that does."""
        shown, best = self.shown, np.empty(0, dtype=np.float32)
        k = min(k, shown.count)
        if not k:
            return 1.0
        for start in range(0, len(self.vectors), SCORED_AT_ONCE):
            part = slice(start, start + SCORED_AT_ONCE)
            members = np.unpackbits(shown.bits[start // 8 : part.stop // 8], bitorder="little")[: shown.size - start]
            if members.any():
                wait()
                scores = np.concatenate([best, (self.vectors[part] @ query)[members.astype(bool)]])
                best = scores[best_first(scores, np.arange(len(scores)), k)]
        return float(np.count_nonzero(self.vectors[self.search(query, k).rows] @ query >= best[-1] - 1e-5) / k)
