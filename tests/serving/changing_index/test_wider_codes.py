from __future__ import annotations

from typing import Any

import faiss
import numpy as np
import pytest

from contracts.config.stages import Retrieve
from serving.bundle import item_index
from serving.changing_index import wider_codes
from serving.changing_index.wider_codes import OUTSIDE, wider

COUNT, WIDTH, COLUMN = 3000, 8, 7


def made() -> tuple[Any, np.ndarray, np.ndarray]:
    """An index of vectors with one and the same number in a column, the vectors with others there, and their lists."""
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((COUNT, WIDTH)).astype(np.float32)
    vectors[:, COLUMN] = 0.5
    index = item_index.build(vectors.copy(), Retrieve(flat_below=10)).faiss_index
    vectors[:, COLUMN] = draw.standard_normal(COUNT)
    return index, vectors, index.quantizer.assign(vectors, 1)[:, 0]


def said(index: Any, vectors: np.ndarray) -> np.ndarray:
    """As its codes say the vectors."""
    return np.stack([index.reconstruct(row) for row in range(len(vectors))])


def test_codes_say_what_they_could_not_and_the_rest_as_before() -> None:
    index, vectors, lists = made()
    found = wider(index, vectors, lists, np.array([COLUMN]))
    assert np.abs(said(found, vectors)[:, COLUMN] - vectors[:, COLUMN]).mean() < 0.02
    np.testing.assert_array_equal(said(found, vectors)[:, :COLUMN], said_anew(index, vectors, lists)[:, :COLUMN])
    asked = np.ones((1, WIDTH), dtype=np.float32)
    best = np.argsort(-(vectors @ asked[0]))[:20]
    params = faiss.SearchParametersIVF(nprobe=found.nlist)  # type: ignore[call-arg]
    assert len(set(found.search(asked, 20, params=params)[1][0].tolist()) & set(best.tolist())) >= 18


def said_anew(index: Any, vectors: np.ndarray, lists: np.ndarray) -> np.ndarray:
    return said(wider(index, vectors, lists, np.empty(0, dtype=np.int64)), vectors)


def test_one_absurd_number_does_not_take_the_others_digits() -> None:
    index, vectors, lists = made()
    vectors[5, COLUMN] = 1e6
    found = said(wider(index, vectors, lists, np.array([COLUMN])), vectors)
    others = np.arange(COUNT) != 5
    assert np.abs(found[others, COLUMN] - vectors[others, COLUMN]).mean() < 0.02
    assert found[5, COLUMN] < 10


def test_of_many_vectors_no_larger_share_lies_outside_than_has_room_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    index, vectors, lists = made()
    for most, fewest, largest in ((8192, 1, 2 * OUTSIDE * COUNT + 2), (8, 0, 4)):
        monkeypatch.setattr(wider_codes, "MOST", most)
        found = said(wider(index, vectors, lists, np.array([COLUMN])), vectors)
        lacking = np.count_nonzero(np.abs(found[:, COLUMN] - vectors[:, COLUMN]) > 0.05)
        assert fewest <= lacking <= largest
