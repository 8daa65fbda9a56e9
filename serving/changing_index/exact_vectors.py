"""Few items' vectors: each search scores all of them where they lie, and there is nothing to keep true."""

from __future__ import annotations

import faiss
import numpy as np

from serving.bundle import item_index
from serving.bundle.item_index import Hits
from serving.bundle.item_set import ItemSet


class ExactVectors:
    """The first `count` of `vectors` [size, d], which others write; more once they are `put`."""

    def __init__(self, count: int, vectors: np.ndarray) -> None:
        self._count, self._vectors = count, vectors

    def put(self, rows: np.ndarray) -> None:
        """Vectors [n] that are other ones now."""
        self._count = max(self._count, int(rows.max()) + 1)

    def publish(self, shown: ItemSet) -> None:
        """There is nothing to it."""

    def search(self, query: np.ndarray, k: int, wanted: ItemSet) -> Hits:
        """The k best of those that are wanted, of which there are as many, for one query [d]."""
        query = np.ascontiguousarray(query, dtype=np.float32)
        assert query.shape == self._vectors.shape[1:]
        scores, rows = np.empty(k, dtype=np.float32), np.empty(k, dtype=np.int64)
        faiss.knn_inner_product(  # what an IndexFlatIP calls
            faiss.swig_ptr(query), faiss.swig_ptr(self._vectors), self._vectors.shape[1], 1, self._count, k,
            faiss.swig_ptr(scores), faiss.swig_ptr(rows), item_index.selector_of(wanted))
        found = rows >= 0
        return Hits(scores[found], rows[found])
