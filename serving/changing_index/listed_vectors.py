"""The lists of an IVF index, whose items' 8-bit codes are replaced where they lie.

A vector that is another one now is taken out of its list, whose last one takes its place, and is appended to the list
whose centroid is nearest: what a build of the same items with the same centroids would hold. That takes some
microseconds an item, in which nobody may search; which list, and which code, is found before. A vector well beyond
what codes can say (uncoded_rows.py) leaves its old code where it lies, which is passed over once that is published;
where there are many of them, all are coded anew (wider_codes.py), once or seldom.

The centroids are those of the items as they were. Where the share p has changed since, a search reads 1 + p / 2 times
the codes: that keeps the recall of an index built anew, also where all bids are other ones and spread more.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import faiss
import numpy as np

from serving.bundle import item_index
from serving.bundle.item_index import Hits, ItemIndex
from serving.bundle.item_set import ItemSet
from serving.changing_index.reading_lock import ReadingLock
from serving.changing_index.uncoded_rows import MOST, UncodedRows
from serving.changing_index.wider_codes import wider

SCORED_AT_ONCE = 64  # vectors, by all centroids: a megabyte of a million items
FEW = 0.05  # of the items that are held
STALE, STEPS = 0.5, 32  # codes read beside others: over the share of items that changed, in so many steps of it
BEYOND = 1 / 8  # of what codes span in one dimension: nearer is said by the last code
LIST_BITS = 32  # of a place in faiss' direct map: the list above, the place in it below
OVER_SHARE, SPARE = 4, 64  # hits beside others: over their share of all items, and for chance


class _Open(NamedTuple):
    """Those that may be found, of them those whose codes may, and rows [m] and vectors [m, d] of all that codes cannot
    say."""

    shown: ItemSet
    coded: ItemSet
    rows: np.ndarray
    vectors: np.ndarray


class ListedVectors:
    """Of `base`, whose own index it changes; `vectors` [size, d] are the items', the base's first. One thread puts and
    publishes, any may search meanwhile."""

    def __init__(self, base: ItemIndex, vectors: np.ndarray) -> None:
        self._base, self._held, self._vectors, self._lock = base, base, vectors, ReadingLock()
        self._changed, self._changes = np.zeros(len(vectors), dtype=bool), 0
        self._uncoded, nobody = UncodedRows(), ItemSet.nobody(len(vectors))
        self._open = _Open(nobody, nobody, self._uncoded.rows, vectors[:0])
        self._lists = base.faiss_index
        self._lists.set_direct_map_type(faiss.DirectMap.Array)  # type: ignore[attr-defined]
        self._centroids = np.ascontiguousarray(self._lists.quantizer.reconstruct_n(0, self._lists.nlist).T)
        self._spanned()

    def _spanned(self) -> None:
        low, span = faiss.vector_to_array(self._lists.sq.trained).reshape(2, -1)
        self._low, self._high, self._wide_at = low - BEYOND * span, low + (1 + BEYOND) * span, MOST // 2

    def put(self, rows: np.ndarray) -> None:
        """Vectors [n] that are other ones now, each once."""
        for start in range(0, len(rows), SCORED_AT_ONCE):
            part = rows[start : start + SCORED_AT_ONCE].astype(np.int64)
            self._append(int(part.max()) + 1)
            self._replace(part)
        self._changes += int(np.count_nonzero(~self._changed[rows]))
        self._changed[rows] = True
        share = self._changes / len(self._held)
        codes = round(self._base.max_codes * (1 + STALE * round(STEPS * share) / STEPS))
        self._held = replace(self._held, max_codes=codes)
        if len(self._uncoded.rows) >= self._wide_at:
            self._widen()

    def _widen(self) -> None:
        """Codes that can say most of what they could not; what they still cannot is no reason to do it again."""
        rows, held, old = self._uncoded.rows, len(self._held), self._lists
        places = faiss.rev_swig_ptr(old.direct_map.array.data(), held)
        lists = places >> LIST_BITS
        for part in np.array_split(rows, math.ceil(len(rows) / SCORED_AT_ONCE)):
            lists[part] = self._nearest(self._vectors[part])
        columns = np.flatnonzero(self._unsaid(self._vectors[rows], lists[rows]).any(axis=0))
        new = wider(old, self._vectors[:held], lists, columns)
        with self._lock.writing():
            self._lists, self._held = new, replace(self._held, faiss_index=new)
        old.reset()  # which lives on, for its quantizer
        self._spanned()
        self._uncoded.put(rows, self._beyond(self._vectors[rows], lists[rows]))
        self._wide_at = max(self._wide_at, 2 * len(self._uncoded.rows))

    def _replace(self, rows: np.ndarray) -> None:
        vectors = self._vectors[rows]
        lists = self._nearest(vectors)
        uncoded = self._uncoded.taken(rows, self._beyond(vectors, lists))
        self._uncoded.put(rows, uncoded)
        if uncoded.all():
            return
        vectors, lists, coded = vectors[~uncoded], lists[~uncoded], rows[~uncoded]
        codes = np.empty((len(coded), self._lists.code_size), dtype=np.uint8)
        of_rows, of_lists, of_codes = (faiss.swig_ptr(array) for array in (coded, lists, codes))
        self._lists.encode_vectors(len(coded), faiss.swig_ptr(vectors), of_lists, of_codes)
        with self._lock.writing():
            self._lists.direct_map.update_codes(self._lists.invlists, len(coded), of_rows, of_lists, of_codes)

    def _beyond(self, vectors: np.ndarray, lists: np.ndarray) -> np.ndarray:
        """bool [n]: whether a vector lies so anywhere."""
        return np.asarray(self._unsaid(vectors, lists).any(axis=1))

    def _unsaid(self, vectors: np.ndarray, lists: np.ndarray) -> np.ndarray:
        """bool [n, d]: where a vector lies well outside of what codes of these lists can say."""
        coded = vectors - self._centroids.T[lists] if self._lists.by_residual else vectors
        return np.asarray((coded < self._low) | (coded > self._high))

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

    def publish(self, shown: ItemSet) -> None:
        """These may be found from now on, and what codes cannot say is."""
        rows = self._uncoded.rows
        if shown is not self._open.shown or rows is not self._open.rows:
            self._open = _Open(shown, _coded(shown, rows), rows, self._vectors[rows])

    def search(self, query: np.ndarray, k: int, wanted: ItemSet) -> Hits:
        """The k best of those that are wanted and published, for one query [d]."""
        now = self._open
        coded = now.coded if wanted is now.shown else _coded(wanted, now.rows)
        with self._lock.reading():
            listed = self._listed(query, k, coded)
        least = listed.scores[-1] if len(listed.rows) == k else -math.inf
        scores = now.vectors @ query
        high = (scores >= least).nonzero()[0]
        high = high[wanted.contains(now.rows[high])]
        if not len(high):
            return listed
        scores, rows = np.concatenate([listed.scores, scores[high]]), np.concatenate([listed.rows, now.rows[high]])
        best = np.argsort(-scores, kind="stable")[:k]  # which takes little for what is sorted but for a few
        return Hits(scores[best], rows[best])

    def _listed(self, query: np.ndarray, k: int, wanted: ItemSet) -> Hits:
        """By their codes. Where few are not wanted, those are left out of some more hits: to ask of each code whether
        its item is wanted takes more."""
        held = self._held
        lacking = len(held) - wanted.count
        if 0 < lacking <= FEW * len(held):
            found = item_index.search_index(held, query, k + OVER_SHARE * k * lacking // len(held) + SPARE)
            kept = wanted.contains(found.rows).nonzero()[0][:k]
            if len(kept) == k:
                return Hits(found.scores[kept], found.rows[kept])
        return item_index.search_index(held, query, k, wanted)


def _coded(wanted: ItemSet, uncoded: np.ndarray) -> ItemSet:
    """Those that are wanted and that codes say."""
    found = wanted.without(uncoded) if len(uncoded) else wanted
    _ = found.count  # kept: counted once, and not by every request
    return found
