from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from contracts.errors import DataError
from models.evaluation.ranking_metrics import ndcg_at_k


def grouped(seed: int, rows: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.integers(0, 2, rows), generator.integers(0, 5, rows).astype(float), generator.integers(0, 12, rows)


@given(st.integers(0, 1000), st.integers(1, 15))
def test_ndcg_is_scikit_learns_mean_over_groups_with_a_positive(seed: int, k: int) -> None:
    labels, scores, groups = grouped(seed)
    expected = [
        ndcg_score([labels[groups == g]], [scores[groups == g]], k=k) for g in np.unique(groups)
        if labels[groups == g].any() and (groups == g).sum() > 1
    ]
    alone = [1.0 for g in np.unique(groups) if labels[groups == g].any() and (groups == g).sum() == 1]
    assert ndcg_at_k(labels, scores, groups, k) == pytest.approx(np.mean(expected + alone))


@given(st.integers(0, 1000), st.integers(1, 8))
def test_it_sees_only_the_order_within_groups(seed: int, k: int) -> None:
    labels, scores, groups = grouped(seed)
    order, value = np.random.default_rng(seed).permutation(len(labels)), ndcg_at_k(labels, scores, groups, k)
    assert ndcg_at_k(labels[order], scores[order], groups[order], k) == pytest.approx(value)
    assert ndcg_at_k(labels, np.exp(scores) + 100.0 * groups, groups, k) == pytest.approx(value)


def test_a_perfect_order_scores_one() -> None:
    labels, _, groups = grouped(3)
    assert ndcg_at_k(labels, labels.astype(float), groups, 5) == pytest.approx(1.0)


def test_no_positive_is_none_and_k_below_one_is_refused() -> None:
    assert ndcg_at_k(np.zeros(3), np.arange(3.0), np.zeros(3), 2) is None
    with pytest.raises(DataError, match="k is 0"):
        ndcg_at_k(np.zeros(3), np.arange(3.0), np.zeros(3), 0)
