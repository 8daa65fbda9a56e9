"""Where the base index keeps an item's vector, so that one dimension of it is changed in place."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np

from serving.bundle.item_index import ItemIndex

SCORED_AT_ONCE = 64  # vectors, by all lists: a megabyte of a million items


class FlatCodes:
    """The vectors of an exact index, as they lie there."""

    def __init__(self, index: Any) -> None:
        self._vectors = faiss.rev_swig_ptr(index.get_xb(), index.ntotal * index.d).reshape(-1, index.d)

    def write(self, rows: np.ndarray, column: int, vectors: np.ndarray) -> np.ndarray:
        """bool [n]: whether one dimension of each of the `vectors` [n, d] was written."""
        self._vectors[rows, column] = vectors[:, column]
        return np.ones(len(rows), dtype=bool)


class ListCodes:
    """The 8-bit codes of an IVF index: residuals from their list's centroid, from `low` on in 255 steps of `span`."""

    def __init__(self, index: Any) -> None:
        self._lists, width = faiss.downcast_InvertedLists(index.invlists), index.d
        self._by_residual = index.by_residual
        self._centroids = np.ascontiguousarray(index.quantizer.reconstruct_n(0, index.nlist).T)  # [d, lists]
        trained = faiss.vector_to_array(index.sq.trained)
        self._low, self._span = trained[:width], trained[width:]
        self._list, self._place = (np.zeros(index.ntotal, dtype=np.int32) for _ in range(2))
        self._codes: list[np.ndarray] = []
        for number in range(index.nlist):
            size = self._lists.list_size(number)
            ids = faiss.rev_swig_ptr(self._lists.get_ids(number), size) if size else np.empty(0, dtype=np.int64)
            self._list[ids], self._place[ids] = number, np.arange(size)
            self._codes.append(faiss.rev_swig_ptr(self._lists.get_codes(number), size * width).reshape(size, width)
                               if size else np.empty((0, width), dtype=np.uint8))

    def write(self, rows: np.ndarray, column: int, vectors: np.ndarray) -> np.ndarray:
        """bool [n]: whether each lies within what the codes can say, and where a search looks for it: one that scores
        above its list's centroid now, and nearer to another's, would be missed as often as one in five."""
        if not len(rows):
            return np.empty(0, dtype=bool)
        lists, values = self._list[rows], vectors[:, column]
        above = values - self._centroids[column, lists]
        steps = 255 * ((above if self._by_residual else values) - self._low[column]) / self._span[column]
        fits = (steps >= 0) & (steps < 256)
        risen = np.flatnonzero(fits & (above > 0))
        if len(risen):
            fits[risen] = self._nearest(vectors[risen]) == lists[risen]
        for number, place, step in zip(lists[fits].tolist(), self._place[rows[fits]].tolist(),
                                       steps[fits].astype(np.uint8).tolist(), strict=True):
            self._codes[number][place, column] = step
        return fits


    def _nearest(self, vectors: np.ndarray) -> np.ndarray:
        """Lists [n] in which a search looks for `vectors` [n, d] first. Of a few, numpy takes a third to a half of the
        time of the index's own quantizer."""
        parts = [vectors[start : start + SCORED_AT_ONCE] for start in range(0, len(vectors), SCORED_AT_ONCE)]
        return np.concatenate([(part @ self._centroids).argmax(axis=1) for part in parts])


def item_codes(base: ItemIndex) -> FlatCodes | ListCodes:
    """Of either kind of index that a bundle has."""
    return FlatCodes(base.faiss_index) if base.exact else ListCodes(base.faiss_index)
