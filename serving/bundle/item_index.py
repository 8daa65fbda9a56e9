"""Maximum inner product search over the items' vectors.

    up to `flat_below` items     Flat: exact
    beyond                       IVF with 4 sqrt(I) lists and 8-bit codes; a search reads lists in the order of their
                                 centroids' scores until it has seen `max_codes` vectors, which bounds its time
    filter passing few           exact over the allowed rows, up to EXACT_READS x `max_codes` of them
    filter passing a share p     IVF reads lists until it has seen `max_codes` x p^0.3 vectors that pass

A filter that passes a share p leaves a best few that lie in more lists, and fewer vectors in each. To see `max_codes`
that pass is to read 1 / p times the lists, and finds more than a search without a filter does; max_codes x p finds
less. Between both, p^0.3 keeps the recall of none, also where what passes lies apart from what is near (one side of
the items, in clusters as of trained towers), for 2.6 times the search at p = 1/10.

With bids, the objective is the expected value bid x p. Its logarithm is (u . v) / temperature + ln(bid) + constant, one
inner product when each item vector gets one more dimension, temperature x ln(bid), and each query a 1 there (a 0 where
clicks alone count). The weight of ln(bid) on the scale of log-odds is thus 1; towers and vectors stay as trained. Zeros
fill the vectors up to whole blocks of ALIGNED: the scan of 8-bit codes takes 1.6 ms with 65 dimensions, 0.5 with 72.
"""

from __future__ import annotations

import atexit
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import faiss
import numpy as np

from contracts.config.stages import Retrieve
from contracts.errors import BundleError
from contracts.summaries.bundle import IndexRecall
from serving.bundle.best_first import best_first
from serving.bundle.item_set import ItemSet
from serving.vector_search import faiss_device
from serving.vector_search.faiss_device import GpuSearch

EXACT_READS, FILTERED_READS = 2, 0.3
MAX_LISTS_READ = 512
ALIGNED = 8  # dimensions
TRAINING_VECTORS_PER_LIST = 64
# An item with bid 0 is worth nothing; the floor keeps its coordinate finite, far below the smallest real bid.
ZERO_BID_SHARE = 1e-3

faiss.omp_set_num_threads(1)


class Hits(NamedTuple):
    """Best first: scores float32 [H], rows int64 [H]."""

    scores: np.ndarray
    rows: np.ndarray


NO_HITS = Hits(np.empty(0, dtype=np.float32), np.empty(0, dtype=np.int64))


class Search(Protocol):
    """As the function `search`."""

    def search(self, query: np.ndarray, k: int, allowed: ItemSet | None = None) -> Hits: ...


@dataclass(frozen=True, eq=False)
class ItemIndex:
    """`faiss_index` over `vectors` float32 [I, d]; the vectors themselves serve the exact search.

    `gpu_index` is its copy on the GPU, where faiss sees one (serving/vector_search/faiss_device.py); it serves searches
    without a filter. `changing` searches in place of all that, where items change
    (serving/changing_index/changing_index.py).
    """

    faiss_index: Any
    vectors: np.ndarray
    max_codes: int
    gpu_index: GpuSearch | None = None
    changing: Search | None = None

    @property
    def exact(self) -> bool:
        """Every vector is scored."""
        return isinstance(self.faiss_index, faiss.IndexFlat)

    @property
    def exact_up_to(self) -> int:
        """Of so many items that a filter passes every one is scored."""
        return EXACT_READS * self.max_codes

    def __len__(self) -> int:
        return len(self.vectors)


def with_bids(vectors: np.ndarray, bids: np.ndarray, temperature: float) -> np.ndarray:
    """[I, d] and bids [I] -> [I, d + 1 and zeros up to whole blocks]; dimension d is temperature x ln(bid)."""
    return with_columns(vectors, temperature * log_bids(bids)[:, None])


def log_bids(bids: np.ndarray) -> np.ndarray:
    """[I], finite for bids of 0 too."""
    positive = bids[bids > 0]
    floor = float(positive.min()) * ZERO_BID_SHARE if len(positive) else 1.0
    return np.log(np.maximum(bids, floor))


def with_columns(vectors: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """[I, d] and [I, c] -> float32 [I, d + c and zeros up to whole blocks]."""
    width, more = vectors.shape[1], columns.shape[1]
    found = np.zeros((len(vectors), _aligned(width + more)), dtype=np.float32)
    found[:, :width], found[:, width : width + more] = vectors, columns
    return found


def with_bid_weight(queries: np.ndarray, weight: float = 1.0, width: int | None = None) -> np.ndarray:
    """[Q, d] -> [Q, as wide as `with_bids` makes d, or `width`]; weight 0 leaves the bid out of the search."""
    dim = queries.shape[1]
    found = np.zeros((len(queries), _aligned(dim + 1) if width is None else width), dtype=np.float32)
    found[:, :dim], found[:, dim] = queries, weight
    return found


def _aligned(width: int) -> int:
    return -(-width // ALIGNED) * ALIGNED


def build(vectors: np.ndarray, settings: Retrieve, seed: int = 0) -> ItemIndex:
    """Index over float32 [I, d]. The same vectors give the same index."""
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    count, width = vectors.shape
    if count <= settings.flat_below:
        index: Any = faiss.IndexFlatIP(width)
    else:
        lists = max(1, min(int(4 * math.sqrt(count)), count // 39))
        index = faiss.index_factory(width, f"IVF{lists},SQ8", faiss.METRIC_INNER_PRODUCT)
        sample = np.random.default_rng(seed).permutation(count)[: lists * TRAINING_VECTORS_PER_LIST]
        faiss_device.train(index, vectors[np.sort(sample)])
        # What a search on the GPU reads: it knows no max_codes.
        index.nprobe = max(1, min(lists, settings.max_codes * lists // count))
    index.add(vectors)
    return ItemIndex(index, vectors, settings.max_codes, faiss_device.on_gpus(index))


def save(index: ItemIndex, path: Path) -> None:
    """The index alone; its vectors lie beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    faiss.write_index(index.faiss_index, str(path))


def load(path: Path, vectors: np.ndarray, settings: Retrieve, writable: bool = False) -> ItemIndex:
    """Copied to the GPU where faiss sees one; mapped, or `writable` in memory of this process's own. Raises BundleError
    when the file does not belong to these vectors."""
    try:
        index = faiss.read_index(str(path), 0 if writable else faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise BundleError(f"the index {path} cannot be read ({error}); assemble the bundle again") from None
    if (index.ntotal, index.d) != vectors.shape:
        raise BundleError(f"the index {path} holds {index.ntotal} vectors of {index.d} dimensions, the item table "
                          f"{vectors.shape[0]} of {vectors.shape[1]}; assemble the bundle again")
    return ItemIndex(index, vectors, settings.max_codes, None if writable else faiss_device.on_gpus(index))


def search(index: ItemIndex, query: np.ndarray, k: int, allowed: ItemSet | None = None) -> Hits:
    """The k best items for one query [d]; `allowed` restricts the search. Fewer come back when fewer may."""
    if index.changing is not None:
        return index.changing.search(query, k, allowed)
    if allowed is not None and allowed.count <= index.exact_up_to:
        return exact_search(index.vectors, query, min(k, allowed.count), allowed.rows())
    return search_index(index, query, k, allowed)


def search_index(index: ItemIndex, query: np.ndarray, k: int, allowed: ItemSet | None = None) -> Hits:
    """As `search`, by the index itself however few are allowed."""
    passing = len(index) if allowed is None else allowed.count
    k, rate = min(k, passing), passing / max(len(index), 1)
    if k == 0:
        return NO_HITS
    selector = None
    if allowed is not None and rate < 1.0:
        selector = selector_of(allowed)
    scores, rows = search_many(index, query.reshape(1, -1), k, selector, rate)
    if rows[0, -1] >= 0:  # what is lacking is lacking at the end
        return Hits(scores[0], rows[0])
    found = rows[0] >= 0
    return Hits(scores[0][found], rows[0][found])


def search_many(
    index: ItemIndex, queries: np.ndarray, k: int, selector: faiss.IDSelector | None = None, rate: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and rows [Q, k] for queries [Q, d], row -1 where there are fewer; `selector` passes the share `rate`."""
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    if index.gpu_index is not None and selector is None and k <= faiss_device.MAX_K:
        return index.gpu_index.search(queries, k)
    if index.exact:
        bounds = None if selector is None else faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
    else:
        codes = max(index.max_codes, math.ceil(k * rate**-FILTERED_READS))
        bounds = bounded(min(index.faiss_index.nlist, math.ceil(MAX_LISTS_READ / rate)),
                         math.ceil(codes * rate**FILTERED_READS), selector)
    return index.faiss_index.search(queries, k, params=bounds)


@lru_cache(maxsize=64)
def selector_of(allowed: ItemSet) -> faiss.IDSelector:
    """The same for every search by the same set: making it, and the bounds of a search, takes a tenth of one."""
    return faiss.IDSelectorBitmap(allowed.bits)  # type: ignore[arg-type, call-arg]


@lru_cache(maxsize=64)
def bounded(lists: int, codes: int, selector: faiss.IDSelector | None = None) -> faiss.SearchParametersIVF:
    """So many lists at most, and codes, of which faiss counts those alone that pass the selector; 0 codes: all of the
    lists. Searches only read it."""
    return faiss.SearchParametersIVF(sel=selector, nprobe=lists, max_codes=codes)  # type: ignore[call-arg]


for kept in (selector_of, bounded):  # while faiss can still free what is kept
    atexit.register(kept.cache_clear)


def exact_search(vectors: np.ndarray, query: np.ndarray, k: int, rows: np.ndarray) -> Hits:
    """The k best of `rows` [R], every one of them scored; ties go to the smaller row."""
    if k == 0:
        return NO_HITS
    scores = vectors.take(rows, axis=0) @ query
    best = best_first(scores, rows, k)
    return Hits(scores[best].astype(np.float32), rows[best].astype(np.int64))


def recall(index: ItemIndex, queries: np.ndarray, k: int) -> IndexRecall:
    """Share of a search's k hits that score as high as the k-th best item, mean and worst over queries [Q, d].

    Measured by score, so that items with one and the same vector may stand for each other.
    """
    k = min(k, len(index))
    if not len(queries) or k == 0:
        return IndexRecall(k=k, queries=0, mean=1.0, worst=1.0)
    shares = []
    for query in queries:
        scores = index.vectors @ query
        limit = np.partition(scores, len(scores) - k)[len(scores) - k]
        rows = search(index, query, k).rows
        shares.append(np.count_nonzero(scores[rows] >= limit - 1e-5) / k)
    return IndexRecall(k=k, queries=len(shares), mean=float(np.mean(shares)), worst=float(np.min(shares)))
