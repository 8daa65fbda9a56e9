"""Each item's most similar items, by cosine of the item tower's vectors; the item-to-item channel reads them.

Up to `flat_below` items all pairs are compared. Beyond, items are gathered in 4 sqrt(I) cells, and those of a cell are
compared together, by one matrix product, with all items of the nearest cells, as many as hold `max_codes` items. Memory
beyond the vectors and the table is that of one cell's scores, and time grows as I x max_codes. Where faiss sees a GPU,
cells are found and compared there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import faiss
import numpy as np

from contracts.config.stages import Retrieve
from serving.bundle import item_index
from serving.vector_search import faiss_device

NOBODY = -1
CHUNK = 1024
ASSIGNED = 65_536  # items whose cells are found at once


def neighbours(vectors: np.ndarray, settings: Retrieve) -> np.ndarray:
    """int32 [I, settings.neighbours], most similar first, never the item itself, padded right with -1."""
    count, width = len(vectors), settings.neighbours
    table = np.full((count, width), NOBODY, dtype=np.int32)
    if count < 2:
        return table
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = np.ascontiguousarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
    kept = min(width, count - 1)
    with all_cores():
        if count <= settings.flat_below:
            _compare_all(directions, table[:, :kept], settings)
        else:
            _compare_by_cell(directions, table[:, :kept], settings.max_codes)
    return table


@contextmanager
def all_cores() -> Iterator[None]:
    """faiss may use every core inside, as it may not in a server."""
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(1)


def _compare_all(directions: np.ndarray, table: np.ndarray, settings: Retrieve) -> None:
    index = item_index.build(directions, settings)
    for start in range(0, len(directions), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(directions)))
        hits = item_index.search_many(index, directions[rows], table.shape[1] + 1)[1]
        table[rows] = _without_self(hits, rows)


def _compare_by_cell(directions: np.ndarray, table: np.ndarray, reach: int) -> None:
    centroids, cell = _cells(directions)
    order = np.argsort(cell, kind="stable")
    bounds = np.searchsorted(cell[order], np.arange(len(centroids) + 1))
    sizes, width = np.diff(bounds), table.shape[1]
    for number in np.flatnonzero(sizes):
        rows = order[bounds[number] : bounds[number + 1]]
        nearest = np.argsort(-(centroids @ centroids[number]), kind="stable")
        nearest = np.concatenate([[number], nearest[nearest != number]])
        held = np.cumsum(sizes[nearest])
        near = nearest[: int(np.searchsorted(held, max(reach, width + 1))) + 1]
        others = np.concatenate([order[bounds[n] : bounds[n + 1]] for n in near])
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            found = faiss_device.nearest(directions[part], directions[others], width + 1)
            table[part] = _without_self(others[found], part)


def _cells(directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(centroids [L, d], the cell int32 [I] of each item), from a sample of the items."""
    count, width = directions.shape
    cells = max(1, min(int(4 * math.sqrt(count)), count // 39))
    sample = np.random.default_rng(0).permutation(count)[: cells * item_index.TRAINING_VECTORS_PER_LIST]
    index: Any = faiss.index_factory(width, f"IVF{cells},Flat", faiss.METRIC_INNER_PRODUCT)
    faiss_device.train(index, directions[np.sort(sample)])
    centroids = index.quantizer.reconstruct_n(0, cells)
    assigned = [faiss_device.nearest(directions[start : start + ASSIGNED], centroids, 1)[:, 0]
                for start in range(0, count, ASSIGNED)]
    return centroids, np.concatenate(assigned).astype(np.int32)


def _without_self(hits: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """[B, k + 1] -> [B, k]: drops the item where it is a hit (twins may have pushed it out), else the last hit."""
    drop = hits == rows[:, None]
    drop[~drop.any(axis=1), -1] = True
    return hits[~drop].reshape(len(hits), -1)
