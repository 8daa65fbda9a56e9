"""An IVF index once more, with 8-bit codes that span what its vectors do now.

Where bids were all the same when a bundle was made, its codes say nothing else. In the columns that lack it their span
is widened to that of all but OUTSIDE of the vectors, on either side: one absurd number does not take the others'
digits.
"""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np

from serving.changing_index.uncoded_rows import MOST

OUTSIDE = 0.001  # on either side, and of the vectors that have room beside the codes no more than an eighth
AT_ONCE = 16_384  # vectors


def wider(index: Any, vectors: np.ndarray, lists: np.ndarray, columns: np.ndarray) -> Any:
    """Of `vectors` [n, d] in their `lists` [n]; `columns` are those to widen. It shares the quantizer of `index`, which
    has to live as long."""
    found = faiss.IndexIVFScalarQuantizer(
        index.quantizer, index.d, index.nlist, index.sq.qtype, index.metric_type, index.by_residual)
    found.sq, found.is_trained = index.sq, True
    low, span = faiss.vector_to_array(index.sq.trained).reshape(2, -1)
    centroids = index.quantizer.reconstruct_n(0, index.nlist)
    outside = min(OUTSIDE, MOST / 8 / max(len(vectors), 1))
    for column in columns.tolist():
        coded = vectors[:, column] - (centroids[lists, column] if index.by_residual else 0.0)
        least, most = np.quantile(coded, (outside, 1 - outside))
        end = max(low[column] + span[column], most)
        low[column] = min(low[column], least)
        span[column] = end - low[column]
    faiss.copy_array_to_vector(np.concatenate([low, span]), found.sq.trained)
    found.set_direct_map_type(faiss.DirectMap.Array)  # type: ignore[attr-defined]
    for start in range(0, len(vectors), AT_ONCE):
        part, own = vectors[start : start + AT_ONCE], lists[start : start + AT_ONCE]
        found.add_core(len(part), faiss.swig_ptr(part), None, faiss.swig_ptr(own))
    return found
