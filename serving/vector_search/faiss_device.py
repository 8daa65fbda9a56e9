"""Where faiss works: on the GPUs that it sees, else on the CPU, and nobody has to say which.

faiss-cpu sees none and lacks the classes for them; a faiss-gpu without a driver sees none either. What a GPU cannot
take (too large for its memory, say) is trained or searched on the CPU, with a warning. A GPU's index is no second file:
the bundle's is copied to it when it is loaded.
"""

from __future__ import annotations

import logging
import threading
from functools import cache
from typing import Any

import faiss
import numpy as np

MAX_K = 2048  # of a search on a GPU
SCRATCH = 256 << 20  # bytes of a GPU that a process keeps for its searches; faiss would take 1.5 GiB for each

log = logging.getLogger(__name__)


@cache
def gpus() -> int:
    """How many this faiss can use."""
    return faiss.get_num_gpus() if hasattr(faiss, "StandardGpuResources") and hasattr(faiss, "get_num_gpus") else 0


class GpuSearch:
    """A copy of `index` on every GPU, which deal queries among them.

    One search at a time: those of several threads would write into the same scratch memory.
    """

    def __init__(self, index: Any) -> None:
        self._resources = [_resources() for _ in range(gpus())]
        self._index = faiss.index_cpu_to_gpu_multiple_py(self._resources, index)
        self._turn = threading.Lock()

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and rows [Q, k] for float32 queries [Q, d]."""
        with self._turn:
            return self._index.search(queries, k)


def on_gpus(index: Any) -> GpuSearch | None:
    """None where there is no GPU, or none that can take it."""
    if not gpus():
        return None
    try:
        return GpuSearch(index)
    except RuntimeError as error:
        _warn(f"an index of {index.ntotal} vectors is searched", error)
        return None


def train(index: Any, vectors: np.ndarray) -> None:
    """Trains an index of lists, which finds their centroids on the GPUs where there are any."""
    if gpus():
        try:
            finder = faiss.index_cpu_to_all_gpus(faiss.IndexFlatIP(index.d))  # faiss holds no reference to it
            index.clustering_index = finder
            index.train(vectors)
            return
        except RuntimeError as error:
            _warn(f"an index is trained on {len(vectors)} vectors", error)
        finally:
            index.clustering_index = None
    index.train(vectors)


def nearest(queries: np.ndarray, stored: np.ndarray, k: int) -> np.ndarray:
    """Rows [Q, k] of `stored` [N, d] with the largest inner products, every one of them computed."""
    if gpus() and k <= MAX_K:
        try:
            return faiss.knn_gpu(_shared(), queries, stored, k, metric=faiss.METRIC_INNER_PRODUCT)[1]
        except RuntimeError as error:
            _warn(f"the nearest of {len(stored)} vectors are searched", error)
    return faiss.knn(queries, stored, k, metric=faiss.METRIC_INNER_PRODUCT)[1]


def _warn(what: str, error: RuntimeError) -> None:
    """faiss says in its last line what went wrong; some of its errors are empty."""
    log.warning("%s on the CPU, since the GPU does not take it: %s", what, (str(error).splitlines() or [""])[-1])


def _resources() -> Any:
    made = faiss.StandardGpuResources()
    made.setTempMemory(SCRATCH)
    return made


_shared = cache(_resources)
