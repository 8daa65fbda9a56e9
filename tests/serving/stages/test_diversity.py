from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.stages.diversity import mmr, unit


def by_the_book(
    relevance: np.ndarray, vectors: np.ndarray, slots: int, diversity: float
) -> tuple[list[int], list[float]]:
    """The formula, one pair at a time."""
    def cosine(i: int, j: int) -> float:
        lengths = float(np.linalg.norm(vectors[i]) * np.linalg.norm(vectors[j]))
        return max(0.0, float(vectors[i] @ vectors[j]) / lengths) if lengths else 0.0

    order: list[int] = []
    scores: list[float] = []
    while len(order) < min(slots, len(relevance)):
        rest = [i for i in range(len(relevance)) if i not in order]
        marginal = {
            i: (1 - diversity) * relevance[i] - diversity * max((cosine(i, j) for j in order), default=0.0)
            for i in rest
        }
        best = max(rest, key=lambda i: (marginal[i], -i))
        order.append(best)
        scores.append(marginal[best])
    return order, scores


@given(st.integers(0, 2**32 - 1), st.integers(1, 15), st.integers(1, 8), st.floats(0.0, 1.0))
def test_against_the_formula(seed: int, items: int, slots: int, diversity: float) -> None:
    generator = np.random.default_rng(seed)
    relevance, vectors = generator.random(items), generator.standard_normal((items, 4))
    result = mmr(relevance, vectors, np.arange(items), slots, diversity)
    order, scores = by_the_book(relevance, vectors, slots, diversity)
    assert result.score == pytest.approx(scores, abs=1e-5)
    if diversity < 1.0:
        assert result.order.tolist() == order
    assert (np.diff(result.score) <= 1e-6).all()


def test_no_diversity_is_the_plain_order() -> None:
    relevance = np.array([0.2, 0.9, 0.2, 0.5])
    result = mmr(relevance, np.ones((4, 2)), np.array([3, 1, 2, 0]), slots=4, diversity=0.0)
    assert result.order.tolist() == [1, 3, 2, 0]
    assert result.score.tolist() == relevance[result.order].tolist()


def test_a_twin_gives_way_to_another_direction() -> None:
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert mmr(np.array([1.0, 0.9, 0.8]), vectors, np.arange(3), 2, 0.5).order.tolist() == [0, 2]


def test_no_candidates() -> None:
    assert len(mmr(np.empty(0), np.empty((0, 3)), np.empty(0, dtype=np.int64), 5, 0.3).order) == 0


def test_zero_vectors_are_similar_to_nothing() -> None:
    assert unit(np.zeros((2, 3))).tolist() == np.zeros((2, 3)).tolist()
