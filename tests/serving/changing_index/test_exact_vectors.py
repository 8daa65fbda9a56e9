from __future__ import annotations

import numpy as np

from serving.bundle.item_set import ItemSet
from serving.changing_index.exact_vectors import ExactVectors

COUNT, SIZE, WIDTH = 50, 70, 8


def made() -> tuple[ExactVectors, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(1)
    vectors = np.zeros((SIZE, WIDTH), dtype=np.float32)
    vectors[:COUNT] = draw.standard_normal((COUNT, WIDTH))
    return ExactVectors(COUNT, vectors), vectors, draw.standard_normal(WIDTH).astype(np.float32)


def test_the_best_of_those_that_are_wanted_best_first() -> None:
    exact, vectors, query = made()
    members = np.random.default_rng(2).random(SIZE) < 0.4
    members[COUNT:] = False
    found = exact.search(query, 7, ItemSet.of(members))
    scores = np.where(members, vectors @ query, -np.inf)
    assert found.rows.tolist() == np.argsort(-scores)[:7].tolist()
    np.testing.assert_allclose(found.scores, scores[found.rows], rtol=1e-5)


def test_what_is_written_is_found_and_new_ones_once_they_are_put() -> None:
    exact, vectors, query = made()
    everybody = ItemSet.of(np.ones(SIZE, dtype=bool))
    vectors[3], vectors[60] = 20 * query, 30 * query
    assert exact.search(query, 2, everybody).rows[0] == 3
    exact.put(np.array([2, 60]))
    assert exact.search(query, 2, everybody).rows.tolist() == [60, 3]
    exact.put(np.array([5]))  # takes none of the others away
    assert exact.search(query, 2, everybody).rows.tolist() == [60, 3]


def test_fewer_come_where_fewer_are_held() -> None:
    exact, _, query = made()
    members = np.zeros(SIZE, dtype=bool)
    members[[1, 4, COUNT + 5]] = True
    assert sorted(exact.search(query, 3, ItemSet.of(members)).rows.tolist()) == [1, 4]
