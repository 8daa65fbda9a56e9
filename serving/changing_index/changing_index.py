"""Maximum inner product search over items that change: the bundle's index, what was merged since, and the latest.

    base      the bundle's own FAISS index, without the items that were described anew
    merged    those, in a second index of the same kind (with the same lists)
    latest    the last thousands of them, each scored until they are merged

The three are searched together, for items that are shown alone. A bid is one dimension of a vector, and is changed in
the base where it lies: with 8-bit codes it is one byte. An item whose bid leaves the range of the codes, or rises out
of its list, goes to the latest. What a search reads is a `Snapshot`, replaced as a whole after every batch of changes.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np

from serving.bundle import item_index
from serving.bundle.best_first import best_first
from serving.bundle.item_index import MAX_LISTS_READ, NO_HITS, Hits, ItemIndex
from serving.bundle.item_set import ItemSet
from serving.changing_index.changing_set import ChangingSet
from serving.changing_index.index_snapshot import Snapshot, living_places, open_parts
from serving.changing_index.item_codes import item_codes

MERGE_AT = 4096  # latest items: of four times as many a merge is long enough for requests to feel it
MOST_LATEST = 65_536
SCORED_AT_ONCE = 16_384
LISTS_OVER_BASE = 2
FEW = 0.05  # of the base's items that are not to be found
OVER_SHARE, SPARE = 4, 64  # hits beside others: over their share of all items, and for chance
QUERIES = 16  # of the latest, to measure recall with


class ChangingIndex:
    """`vectors` [size, d] of all items, those of `base` first. One thread changes, any may merge, all search."""

    def __init__(self, base: ItemIndex, vectors: np.ndarray) -> None:
        count, size = len(base), len(vectors)
        self.base, self.vectors, self.merges = base, vectors, 0
        self._codes = item_codes(base)
        known = np.arange(size) < count
        self._shown, self._in_base = ChangingSet(known), ChangingSet(known)
        self._in_merged = ChangingSet(np.zeros(size, dtype=bool))
        self._merged = _like(base)
        self._begun, self._count = 0, 0  # of all latest ever: how many were merged away, how many of the rest there are
        self._rows, self._latest = _latest_room(vectors.shape[1])
        self._slots = np.full(size, -1, dtype=np.int64)
        self._lock, self._merging = threading.Lock(), threading.Lock()
        self.asked: deque[np.ndarray] = deque(maxlen=QUERIES)
        self._sets: tuple[ItemSet, ItemSet, ItemSet] | None = None
        self._unpublished = False
        self.snapshot = self._taken()

    @property
    def unmerged(self) -> int:
        return self._count

    def show(self, rows: np.ndarray, shown: np.ndarray) -> None:
        """Whether each of the items may be found."""
        with self._lock:  # a merge takes the sets meanwhile
            self._unpublished = True
            self._shown.put(rows, shown)

    def put(self, rows: np.ndarray) -> None:
        """Items whose vectors are other ones now."""
        with self._lock:
            self._unpublished = True
            self._put(rows)

    def set_column(self, rows: np.ndarray, column: int, values: np.ndarray) -> None:
        """One dimension of items' vectors."""
        with self._lock:
            self._unpublished = True
            self.vectors[rows, column] = values
            based = self._in_base.members[rows]
            written = self._codes.write(rows[based], column, self.vectors[rows[based]])
            self._put(np.concatenate([rows[~based], rows[based][~written]]))

    def publish(self) -> None:
        """From now on searches see all of it."""
        with self._lock:
            self.snapshot, self._unpublished = self._taken(), False

    def merge(self) -> None:
        """Takes the latest into the merged index; searches go on meanwhile, another merge waits for this one. What is
        changed and not published yet stays so: searches read on where it was, until it is."""
        with self._merging:
            self._merge()

    def _merge(self) -> None:
        with self._lock:
            count, rows = self._count, self._rows[: self._count].copy()
            vectors, kept = self._latest, self._in_merged.taken()
        grown = self._copied()
        grown.remove_ids(faiss.IDSelectorNot(faiss.IDSelectorBitmap(kept.bits)))  # type: ignore[arg-type, call-arg]
        living = rows >= 0
        grown.add_with_ids(np.ascontiguousarray(vectors[:count][living]), rows[living])
        with self._lock:
            self._move(count, grown)
            if not self._unpublished:
                self.snapshot = self._taken()

    def _copied(self) -> Any:
        """The merged index once more."""
        if self.base.exact:
            return faiss.clone_index(self._merged)
        copy = _like(self.base)
        of_ids = faiss.InvertedLists.SUBSET_TYPE_ID_RANGE  # type: ignore[attr-defined]
        self._merged.copy_subset_to(copy, of_ids, 0, len(self.vectors))
        return copy

    def search(self, query: np.ndarray, k: int, allowed: ItemSet | None = None) -> Hits:
        """The k best items that are shown, and `allowed` where there is such a set, for one query [d]."""
        now = self.snapshot
        self.asked.append(query)
        open_ = now.parts(allowed)
        k = min(k, open_.all.count)
        if k == 0:
            return NO_HITS
        if open_.all is not now.whole.all and open_.all.count <= self.base.exact_up_to:
            return item_index.exact_search(self.vectors, query, k, open_.all.rows())
        based = self._of_base(query, k, open_.base)
        least = float(based.scores[-1]) if len(based.rows) == k else -math.inf
        changed = [self._of_merged(now, query, k, open_.merged, least), _of_latest(now, query, k, open_.all, least)]
        if not any(len(part.rows) for part in changed):
            return based
        scores, rows = (np.concatenate(part) for part in zip(based, *changed, strict=True))
        best = best_first(scores, rows, k)
        return Hits(scores[best], rows[best])

    def recall(self, query: np.ndarray, k: int, wait: Callable[[], None] = lambda: None) -> float:
        """Share of a search's hits that score as high as the k-th best item that is shown; will `wait` before every
        SCORED_AT_ONCE of them, and raises what that does."""
        shown, best = self.snapshot.shown, np.empty(0, dtype=np.float32)
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

    def _of_base(self, query: np.ndarray, k: int, wanted: ItemSet) -> Hits:
        """Where few are not wanted, those are left out of some more hits: to look up each code's item and its bit
        takes more."""
        k, lacking = min(k, wanted.count), len(self.base) - wanted.count
        if 0 < lacking <= FEW * len(self.base):
            found = item_index.search_index(self.base, query, k + OVER_SHARE * k * lacking // len(self.base) + SPARE)
            kept = wanted.contains(found.rows).nonzero()[0][:k]
            if len(kept) == k:
                return Hits(found.scores[kept], found.rows[kept])
        return item_index.search_index(self.base, query, k, wanted)

    def _of_merged(self, now: Snapshot, query: np.ndarray, k: int, wanted: ItemSet, least: float) -> Hits:
        """The k best of those that score `least` and more. Few are asked for, and all where those are not enough."""
        k = min(k, wanted.count)
        if not k:
            return NO_HITS
        selector = item_index.selector_of(wanted)
        if self.base.exact:
            bounds: Any = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
        else:
            bounds = item_index.bounded(self._lists_read(wanted.count / now.merged.ntotal), 0, selector)
        few = min(k, OVER_SHARE * k * wanted.count // len(self.base) + SPARE)
        for asked in (few, k):
            scores, rows = now.merged.search(query[None].astype(np.float32), asked, params=bounds)
            if asked == k or rows[0, -1] < 0 or scores[0, -1] < least:
                break
        found = (rows[0] >= 0) & (scores[0] >= least)
        return Hits(scores[0][found], rows[0][found])

    def _lists_read(self, rate: float) -> int:
        """Of the merged index, where the share `rate` passes: more than a search of the base reads, for few are in
        each."""
        lists = self.base.faiss_index.nlist
        base = self.base.max_codes * lists / len(self.base)
        return min(lists, MAX_LISTS_READ, math.ceil(LISTS_OVER_BASE * base / rate))

    def _put(self, rows: np.ndarray) -> None:
        rows = np.unique(rows)
        if not len(rows):
            return
        assert len(rows) <= MOST_LATEST - self._count, "the latest are merged before there is no room for more"
        before = self._slots[rows] - self._begun
        self._rows[before[before >= 0]] = -1
        end = self._count + len(rows)
        self._rows[self._count : end], self._latest[self._count : end] = rows, self.vectors[rows]
        self._slots[rows] = np.arange(self._count, end) + self._begun
        self._in_base.put(rows, False)
        self._in_merged.put(rows, False)
        self._count = end

    @property
    def free(self) -> int:
        """How many more the latest can take."""
        return MOST_LATEST - self._count

    def _move(self, count: int, grown: Any) -> None:
        """The first `count` of the latest are in `grown`; those that changed meanwhile stay out of its sight."""
        moved = self._rows[:count][self._rows[:count] >= 0]
        self._in_merged.put(moved, True)
        rows, latest = _latest_room(self.vectors.shape[1])
        rest = self._count - count
        rows[:rest], latest[:rest] = self._rows[count : self._count], self._latest[count : self._count]
        self._rows, self._latest, self._count, self._begun = rows, latest, rest, self._begun + count
        self._merged, self.merges = grown, self.merges + 1

    def _taken(self) -> Snapshot:
        """Its sets are those of the one before where nothing was put."""
        sets = self._shown.taken(), self._in_base.taken(), self._in_merged.taken()
        if sets != self._sets:
            self._sets, self._whole = sets, open_parts(*sets, len(self.base))  # made here, and not by the first request
        return Snapshot(base=len(self.base), shown=sets[0], in_base=sets[1], in_merged=sets[2], whole=self._whole,
                        merged=self._merged, rows=self._rows[: self._count].copy(),
                        vectors=self._latest[: self._count])


def _of_latest(now: Snapshot, query: np.ndarray, k: int, open_: ItemSet, least: float) -> Hits:
    """The k best of those that score `least` and more."""
    if not len(now.rows):
        return NO_HITS
    found = now.living if open_ is now.shown else living_places(now.rows, open_)
    scores = (now.vectors @ query)[found]
    high = (scores >= least).nonzero()[0]
    scores, rows = scores[high], now.rows[found[high]]
    best = best_first(scores, rows, k)
    return Hits(scores[best], rows[best])


def _latest_room(width: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full(MOST_LATEST, -1, dtype=np.int64), np.empty((MOST_LATEST, width), dtype=np.float32)


def _like(base: ItemIndex) -> Any:
    """An empty index of the same kind, which knows items by numbers of their own."""
    if base.exact:
        return faiss.IndexIDMap(faiss.IndexFlatIP(base.vectors.shape[1]))
    index = base.faiss_index
    empty = faiss.IndexIVFScalarQuantizer(  # of the same centroids, which a search of both reads once
        index.quantizer, index.d, index.nlist, index.sq.qtype, index.metric_type, index.by_residual)
    empty.sq, empty.is_trained = index.sq, True
    return empty
