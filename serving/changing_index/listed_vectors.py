"""The lists of an IVF index, whose items' 8-bit codes are replaced where they lie.

A vector that is another one now is taken out of its list, whose last one takes its place, and is appended to the list
whose centroid is nearest: what a build of the same items with the same centroids would hold. That takes a microsecond
an item, in which nobody may search; which list, and which code, is found before.

The centroids are those of the items as they were. Where the share p has changed since, a search reads 1 + p / 2 times
the codes: that keeps the recall of an index built anew, also where all bids are other ones and spread more.
"""

from __future__ import annotations

from dataclasses import replace

import faiss
import numpy as np

from serving.bundle import item_index
from serving.bundle.item_index import Hits, ItemIndex
from serving.bundle.item_set import ItemSet
from serving.changing_index.reading_lock import ReadingLock

SCORED_AT_ONCE = 64  # vectors, by all centroids: a megabyte of a million items
FEW = 0.05  # of the items that are held
STALE, STEPS = 0.5, 32  # codes read beside others: over the share of items that changed, in so many steps of it
OVER_SHARE, SPARE = 4, 64  # hits beside others: over their share of all items, and for chance


class ListedVectors:
    """Of `base`, whose own index it changes; `vectors` [size, d] are the items', the base's first. One thread puts, any
    may search meanwhile."""

    def __init__(self, base: ItemIndex, vectors: np.ndarray) -> None:
        self._base, self._held, self._vectors, self._lock = base, base, vectors, ReadingLock()
        self._changed, self._changes = np.zeros(len(vectors), dtype=bool), 0
        self._lists = base.faiss_index
        self._lists.set_direct_map_type(faiss.DirectMap.Array)  # type: ignore[attr-defined]
        self._centroids = np.ascontiguousarray(self._lists.quantizer.reconstruct_n(0, self._lists.nlist).T)

    def put(self, rows: np.ndarray) -> None:
        """Vectors [n] that are other ones now, each once."""
        for start in range(0, len(rows), SCORED_AT_ONCE):
            part = rows[start : start + SCORED_AT_ONCE]
            self._replace(part[part < len(self._held)])
            self._append(int(part.max()) + 1)
        self._changes += int(np.count_nonzero(~self._changed[rows]))
        self._changed[rows] = True
        share = self._changes / len(self._held)
        codes = round(self._base.max_codes * (1 + STALE * round(STEPS * share) / STEPS))
        self._held = replace(self._held, max_codes=codes)

    def _replace(self, rows: np.ndarray) -> None:
        if not len(rows):
            return
        rows, vectors = rows.astype(np.int64), self._vectors[rows]
        lists, codes = self._nearest(vectors), np.empty((len(rows), self._lists.code_size), dtype=np.uint8)
        of_rows, of_lists, of_codes = (faiss.swig_ptr(array) for array in (rows, lists, codes))
        self._lists.encode_vectors(len(rows), faiss.swig_ptr(vectors), of_lists, of_codes)
        with self._lock.writing():
            self._lists.direct_map.update_codes(self._lists.invlists, len(rows), of_rows, of_lists, of_codes)

    def _append(self, end: int) -> None:
        """All that are not held yet up to row `end`: faiss counts them through."""
        while (held := len(self._held)) < end:
            vectors = self._vectors[held : min(end, held + SCORED_AT_ONCE)]
            lists = self._nearest(vectors)
            with self._lock.writing():
                self._lists.add_core(len(vectors), faiss.swig_ptr(vectors), None, faiss.swig_ptr(lists))
                self._held = replace(self._held, vectors=self._vectors[: held + len(vectors)])

    def _nearest(self, vectors: np.ndarray) -> np.ndarray:
        """Lists [n] in which a search looks for `vectors` [n, d] first. Of a few, numpy takes a third to a half of the
        time of the index's own quantizer."""
        return (vectors @ self._centroids).argmax(axis=1)

    def search(self, query: np.ndarray, k: int, wanted: ItemSet) -> Hits:
        """The k best of those that are wanted for one query [d]. Where few are not, those are left out of some more
        hits: to ask of each code whether its item is wanted takes more."""
        with self._lock.reading():
            held = self._held
            lacking = len(held) - wanted.count
            if lacking <= FEW * len(held):
                found = item_index.search_index(held, query, k + OVER_SHARE * k * lacking // len(held) + SPARE)
                kept = wanted.contains(found.rows).nonzero()[0][:k]
                if len(kept) == k:
                    return Hits(found.scores[kept], found.rows[kept])
            return item_index.search_index(held, query, k, wanted)
