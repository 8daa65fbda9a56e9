"""Neighbours equal brute-force cosines and never hold the item itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.config.stages import Retrieve
from serving.assembly import item_to_item
from serving.assembly.item_to_item import neighbours


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 40), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_equal_to_brute_force(count: int, width: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, 6)).astype(np.float32)
    found = neighbours(vectors, Retrieve(neighbours=width))
    lengths = np.linalg.norm(vectors, axis=1)
    cosine = vectors @ vectors.T / np.outer(lengths, lengths)
    np.fill_diagonal(cosine, -np.inf)
    kept = min(width, count - 1)
    assert found.shape == (count, width)
    assert found.dtype == np.int32
    assert (found[:, kept:] == -1).all()
    best = np.sort(cosine, axis=1)[:, ::-1][:, :kept]
    np.testing.assert_allclose(np.take_along_axis(cosine, found[:, :kept].astype(int), axis=1), best, atol=1e-5)


def test_many_twins_never_bring_the_item_itself() -> None:
    vectors = np.ones((30, 4), dtype=np.float32)
    found = neighbours(vectors, Retrieve(neighbours=5))
    assert (found != np.arange(30)[:, None]).all()
    assert (found >= 0).all()
    assert all(len(set(row)) == 5 for row in found.tolist())


@pytest.mark.parametrize("count", [0, 1])
def test_no_neighbours_to_have(count: int) -> None:
    found = neighbours(np.ones((count, 4), dtype=np.float32), Retrieve(neighbours=3))
    assert found.tolist() == [[-1, -1, -1]] * count


def test_beyond_the_limit_the_approximate_index_answers() -> None:
    vectors = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    near, exact = (neighbours(vectors, Retrieve(neighbours=5, flat_below=limit)) for limit in (10, 10_000))
    same = [len(set(a) & set(b)) / 5 for a, b in zip(near.tolist(), exact.tolist(), strict=True)]
    assert np.mean(same) > 0.8
    assert (near != np.arange(3000)[:, None]).all()


def test_cells_find_nearly_what_all_pairs_find_and_leave_faiss_as_it_was() -> None:
    draw = np.random.default_rng(1)
    centres = draw.normal(size=(30, 16))
    vectors = (centres[draw.integers(0, 30, 4000)] + draw.normal(size=(4000, 16))).astype(np.float32)
    near, exact = (neighbours(vectors, Retrieve(neighbours=10, flat_below=limit, max_codes=1000))
                   for limit in (10, 10_000))
    same = [len(set(a) & set(b)) / 10 for a, b in zip(near.tolist(), exact.tolist(), strict=True)]
    assert np.mean(same) > 0.9
    assert (near >= 0).all()
    assert faiss.omp_get_max_threads() == 1


def test_a_reach_of_less_than_the_neighbours_still_fills_every_row() -> None:
    vectors = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
    found = neighbours(vectors, Retrieve(neighbours=40, flat_below=10, max_codes=1))
    assert (found >= 0).all()
    assert all(len(set(row)) == 40 for row in found.tolist())
    assert (found != np.arange(500)[:, None]).all()


def test_no_more_is_compared_at_once_than_a_part_of_a_cell_with_its_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []
    knn: Callable[..., tuple[np.ndarray, np.ndarray]] = faiss.knn

    def told(part: np.ndarray, others: np.ndarray, k: int, **named: Any) -> tuple[np.ndarray, np.ndarray]:
        if k > 1:  # one alone is the cell of an item
            compared.append((len(part), len(others)))
        return knn(part, others, k, **named)

    monkeypatch.setattr(item_to_item, "CHUNK", 16)
    monkeypatch.setattr(faiss, "knn", told)
    vectors = np.random.default_rng(2).normal(size=(4000, 8)).astype(np.float32)
    neighbours(vectors, Retrieve(neighbours=5, flat_below=10, max_codes=200))
    assert sum(rows for rows, _ in compared) == len(vectors)
    assert max(rows for rows, _ in compared) <= 16
    assert max(others for _, others in compared) < len(vectors) / 4
