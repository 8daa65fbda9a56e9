from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contracts.config.stages import Retrieve
from serving.bundle import item_index
from serving.bundle.item_index import ItemIndex
from serving.changing_index.item_codes import SCORED_AT_ONCE, FlatCodes, ListCodes, item_codes

COUNT, WIDTH, COLUMN = 600, 8, 7


def built(flat_below: int) -> tuple[ItemIndex, np.ndarray]:
    vectors = np.random.default_rng(1).standard_normal((COUNT, WIDTH)).astype(np.float32)
    return item_index.build(vectors.copy(), Retrieve(flat_below=flat_below)), vectors


def stored(index: ItemIndex) -> np.ndarray:
    """[COUNT, WIDTH], as faiss itself decodes them."""
    faiss_index: Any = index.faiss_index
    if not index.exact:
        faiss_index.make_direct_map()
    return np.stack([faiss_index.reconstruct(row) for row in range(COUNT)])


@pytest.mark.parametrize(("flat_below", "kind"), [(COUNT, FlatCodes), (10, ListCodes)])
def test_one_dimension_is_written_where_it_lies_and_nothing_else(flat_below: int, kind: type) -> None:
    index, vectors = built(flat_below)
    before, codes = stored(index), item_codes(index)
    assert isinstance(codes, kind)
    rows = np.random.default_rng(2).permutation(COUNT)[:200]
    vectors[rows, COLUMN] -= 0.3
    written = codes.write(rows, COLUMN, vectors[rows])
    after = stored(index)
    step = np.ptp(before[:, COLUMN]) / 255
    assert written.mean() > 0.5
    np.testing.assert_allclose(after[rows[written], COLUMN], vectors[rows[written], COLUMN], atol=2 * step)
    changed = np.zeros((COUNT, WIDTH), dtype=bool)
    changed[rows[written], COLUMN] = True
    np.testing.assert_array_equal(after[~changed], before[~changed])


def test_what_the_codes_cannot_say_is_not_written() -> None:
    index, vectors = built(10)
    before, codes, rows = stored(index), item_codes(index), np.arange(5)
    vectors[rows, COLUMN] = 1e6
    assert not codes.write(rows, COLUMN, vectors[rows]).any()
    np.testing.assert_array_equal(stored(index), before)


def test_nothing_is_written_of_nothing() -> None:
    for flat_below in (COUNT, 10):
        index, vectors = built(flat_below)
        assert item_codes(index).write(np.empty(0, dtype=np.int64), COLUMN, vectors[:0]).tolist() == []


def test_what_has_risen_is_written_where_its_list_is_still_the_nearest() -> None:
    """As the index's own quantizer has it, of more vectors than are scored at once."""
    index, vectors = built(10)
    faiss_index: Any = index.faiss_index
    own = faiss_index.quantizer.assign(vectors, 1)[:, 0]
    centroids = faiss_index.quantizer.reconstruct_n(0, faiss_index.nlist)
    rows = np.flatnonzero(vectors[:, COLUMN] < centroids[own, COLUMN])
    vectors[rows, COLUMN] = centroids[own[rows], COLUMN] + 0.2
    now = faiss_index.quantizer.assign(vectors[rows], 1)[:, 0]
    assert len(rows) > 2 * SCORED_AT_ONCE
    written = item_codes(index).write(rows, COLUMN, vectors[rows])
    assert 0.1 < written.mean() < 0.9
    np.testing.assert_array_equal(written, now == own[rows])
