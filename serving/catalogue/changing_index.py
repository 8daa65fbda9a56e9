"""Maximum inner product search over items that change: the bundle's index, what was merged since, and the latest.

    base      the bundle's own FAISS index, without the items that were described anew
    merged    those, in a second index of the same kind (with the same lists)
    latest    the last few thousand of them, searched one by one until they are merged

The three are searched together, for items that are shown alone. A bid is one dimension of a vector, and is changed in
the base where it lies: with 8-bit codes it is one byte. An item whose bid leaves the range of the codes, or rises out
of its list, goes to the latest. What a search reads is a `Snapshot`, replaced as a whole after every batch of changes.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import faiss
import numpy as np

from serving.bundle import item_index
from serving.bundle.best_first import best_first
from serving.bundle.item_index import MAX_LISTS_READ, NO_HITS, Hits, ItemIndex
from serving.bundle.item_set import ItemSet
from serving.catalogue.changing_set import ChangingSet

MERGE_AT = 4096  # latest items
MOST_LATEST = 65_536
SCORED_AT_ONCE = 16_384
LISTS_OVER_BASE = 2
QUERIES = 16  # of the latest, to measure recall with


class OpenParts(NamedTuple):
    """Items that a search may find: all, those whose vector the base has, and those whose vector the merged index
    has."""

    all: ItemSet
    base: ItemSet
    merged: ItemSet


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """`shown`: items that may be; `in_base`, `in_merged`: those whose vector is the one that the index holds; `whole`:
    where the shown ones lie; `rows` [L] of the latest, -1 where a later one of the same item follows; `vectors` [L, d];
    `base` items have the base."""

    base: int
    shown: ItemSet
    in_base: ItemSet
    in_merged: ItemSet
    merged: Any
    whole: OpenParts
    rows: np.ndarray
    vectors: np.ndarray

    @cached_property
    def living(self) -> np.ndarray:
        """Where among the latest those lie that may be shown."""
        return _living(self.rows, self.shown)

    @cached_property
    def merged_selector(self) -> faiss.IDSelector:
        """Of what a search without a filter may find in the merged index."""
        return faiss.IDSelectorBitmap(self.whole.merged.bits)  # type: ignore[arg-type, call-arg]

    def parts(self, allowed: ItemSet | None) -> OpenParts:
        """Where the shown items lie that are `allowed`; None: all of them."""
        if allowed is None or allowed is self.shown:
            return self.whole
        return _parts(allowed & self.shown, self.in_base, self.in_merged, self.base)


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
        self.snapshot = self._taken()

    @property
    def unmerged(self) -> int:
        return len(self.snapshot.rows)

    def show(self, rows: np.ndarray, shown: np.ndarray) -> None:
        self._shown.put(rows, shown)

    def put(self, rows: np.ndarray) -> None:
        """Items whose vectors are other ones now."""
        with self._lock:
            self._put(rows)

    def set_column(self, rows: np.ndarray, column: int, values: np.ndarray) -> None:
        """One dimension of items' vectors."""
        with self._lock:
            self.vectors[rows, column] = values
            based = self._in_base.members[rows]
            written = self._codes.write(rows[based], column, self.vectors[rows[based]])
            self._put(np.concatenate([rows[~based], rows[based][~written]]))

    def publish(self) -> None:
        """From now on searches see all of it."""
        with self._lock:
            self.snapshot = self._taken()

    def merge(self) -> None:
        """Takes the latest into the merged index; searches go on meanwhile, another merge waits for this one."""
        with self._merging:
            self._merge()

    def _merge(self) -> None:
        with self._lock:
            count, rows = self._count, self._rows[: self._count].copy()
            vectors, kept = self._latest, self._in_merged.taken()
        grown = faiss.clone_index(self._merged)
        grown.remove_ids(faiss.IDSelectorNot(faiss.IDSelectorBitmap(kept.bits)))  # type: ignore[arg-type, call-arg]
        living = rows >= 0
        grown.add_with_ids(np.ascontiguousarray(vectors[:count][living]), rows[living])
        with self._lock:
            self._move(count, grown)
            self.snapshot = self._taken()

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
        parts = [item_index.search_index(self.base, query, k, open_.base),
                 self._of_merged(now, query, k, open_.merged), _of_latest(now, query, k, open_.all)]
        scores, rows = (np.concatenate(part) for part in zip(*parts, strict=True))
        best = best_first(scores, rows, k)
        return Hits(scores[best], rows[best])

    def recall(self, query: np.ndarray, k: int, wait: Callable[[], None] = lambda: None) -> float:
        """Share of a search's hits that score as high as the k-th best item that is shown; will `wait` before every
        SCORED_AT_ONCE of them."""
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

    def _of_merged(self, now: Snapshot, query: np.ndarray, k: int, wanted: ItemSet) -> Hits:
        if not wanted.count:
            return NO_HITS
        selector = now.merged_selector if wanted is now.whole.merged else faiss.IDSelectorBitmap(
            wanted.bits)  # type: ignore[arg-type, call-arg]
        bounds: dict[str, Any] = {"sel": selector}
        if not self.base.exact:
            bounds["nprobe"] = self._lists_read(wanted.count / now.merged.ntotal)
        kind = faiss.SearchParameters if self.base.exact else faiss.SearchParametersIVF
        scores, rows = now.merged.search(query[None].astype(np.float32), min(k, wanted.count), params=kind(**bounds))
        found = rows[0] >= 0
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
            self._sets, self._whole = sets, _parts(*sets, len(self.base))  # made here, and not by the first request
        return Snapshot(base=len(self.base), shown=sets[0], in_base=sets[1], in_merged=sets[2], whole=self._whole,
                        merged=self._merged, rows=self._rows[: self._count].copy(),
                        vectors=self._latest[: self._count])


def _parts(open_: ItemSet, in_base: ItemSet, in_merged: ItemSet, base: int) -> OpenParts:
    found = OpenParts(open_, (open_ & in_base).cut(base), open_ & in_merged)
    _ = [part.count for part in found]  # kept: counted once, and not by every request
    return found


def _of_latest(now: Snapshot, query: np.ndarray, k: int, open_: ItemSet) -> Hits:
    if not len(now.rows):
        return NO_HITS
    found = now.living if open_ is now.shown else _living(now.rows, open_)
    scores = (now.vectors @ query)[found]
    best = best_first(scores, now.rows[found], k)
    return Hits(scores[best], now.rows[found][best])


def _living(rows: np.ndarray, open_: ItemSet) -> np.ndarray:
    return np.flatnonzero((rows >= 0) & open_.contains(rows))


def _latest_room(width: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full(MOST_LATEST, -1, dtype=np.int64), np.empty((MOST_LATEST, width), dtype=np.float32)


def _like(base: ItemIndex) -> Any:
    """An empty index of the same kind, which knows items by numbers of their own."""
    if base.exact:
        return faiss.IndexIDMap(faiss.IndexFlatIP(base.vectors.shape[1]))
    empty = faiss.clone_index(base.faiss_index)
    empty.reset()
    return empty


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
        self._quantizer, self._by_residual = index.quantizer, index.by_residual
        self._centroids = self._quantizer.reconstruct_n(0, index.nlist)
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
        above = values - self._centroids[lists, column]
        steps = 255 * ((above if self._by_residual else values) - self._low[column]) / self._span[column]
        fits = (steps >= 0) & (steps < 256)
        risen = np.flatnonzero(fits & (above > 0))
        if len(risen):
            fits[risen] = self._quantizer.assign(np.ascontiguousarray(vectors[risen]), 1)[:, 0] == lists[risen]
        for number, place, step in zip(lists[fits].tolist(), self._place[rows[fits]].tolist(),
                                       steps[fits].astype(np.uint8).tolist(), strict=True):
            self._codes[number][place, column] = step
        return fits


def item_codes(base: ItemIndex) -> FlatCodes | ListCodes:
    return FlatCodes(base.faiss_index) if base.exact else ListCodes(base.faiss_index)
