from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as reference

from contracts.errors import DataError, OneClassError
from models.evaluation.metrics import auc, gauc, log_loss


def brute_auc(labels: np.ndarray, scores: np.ndarray) -> float:
    positive, negative = scores[labels == 1], scores[labels == 0]
    return float(np.mean([(p > n) + 0.5 * (p == n) for p in positive for n in negative]))


@st.composite
def ranked(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Labels of both classes and scores with many ties."""
    rows = draw(st.lists(st.tuples(st.booleans(), st.integers(-4, 4)), min_size=1, max_size=40))
    labels = np.array([1, 0] + [int(label) for label, _ in rows])
    scores = np.array([0.0, 1.0] + [float(score) for _, score in rows])
    return labels, scores


@given(ranked())
def test_auc_counts_pairs_with_ties_as_half(rows: tuple[np.ndarray, np.ndarray]) -> None:
    labels, scores = rows
    assert auc(labels, scores) == pytest.approx(brute_auc(labels, scores), abs=1e-12)
    assert auc(labels, scores) == pytest.approx(reference.roc_auc_score(labels, scores), abs=1e-12)


@given(ranked())
def test_auc_sees_only_the_order(rows: tuple[np.ndarray, np.ndarray]) -> None:
    labels, scores = rows
    assert auc(labels, np.exp(scores / 3) - 7) == auc(labels, scores)
    assert auc(labels, -scores) == pytest.approx(1 - auc(labels, scores), abs=1e-12)
    assert auc(1 - labels, scores) == pytest.approx(1 - auc(labels, scores), abs=1e-12)


@given(ranked(), st.randoms(use_true_random=False))
def test_row_order_changes_nothing(rows: tuple[np.ndarray, np.ndarray], random) -> None:
    labels, scores = rows
    users = np.arange(len(labels)) % 3
    order = np.array(random.sample(range(len(labels)), len(labels)))
    assert auc(labels[order], scores[order]) == auc(labels, scores)
    assert gauc(labels[order], scores[order], users[order]) == pytest.approx(gauc(labels, scores, users), abs=1e-12)


@pytest.mark.parametrize("labels", [[], [0, 0], [1, 1, 1]])
def test_auc_of_one_class_is_refused_with_the_counts(labels: list[int]) -> None:
    with pytest.raises(OneClassError, match=f"{sum(labels)} of {len(labels)} labels are positive"):
        auc(np.array(labels), np.zeros(len(labels)))


def test_gauc_is_the_impression_weighted_mean_over_users_of_both_classes() -> None:
    generator = np.random.default_rng(0)
    labels, users = generator.integers(0, 2, 300), generator.choice(["a", "b", "c", "d"], 300, p=[0.6, 0.2, 0.15, 0.05])
    labels[users == "d"] = 0
    scores = generator.integers(0, 6, 300).astype(float)
    parts = [(brute_auc(labels[users == u], scores[users == u]), int((users == u).sum())) for u in "abc"]
    expected = sum(value * rows for value, rows in parts) / sum(rows for _, rows in parts)
    found = gauc(labels, scores, users)
    assert found.value == pytest.approx(expected)
    assert (found.users, found.skipped) == (3, 1)


def test_gauc_of_one_user_is_the_auc_and_none_without_a_usable_user() -> None:
    labels, scores = np.array([0, 1, 0, 1]), np.array([0.1, 0.4, 0.5, 0.9])
    assert gauc(labels, scores, np.zeros(4)).value == auc(labels, scores)
    assert gauc(labels, scores, np.arange(4)) == (None, 0, 4)


def test_log_loss_is_scikit_learns() -> None:
    generator = np.random.default_rng(1)
    probabilities = generator.uniform(0.001, 0.999, 500)
    labels = (generator.random(500) < probabilities).astype(int)
    assert log_loss(labels, probabilities) == pytest.approx(reference.log_loss(labels, probabilities))


@pytest.mark.parametrize("bad", [0.0, 1.0])
def test_log_loss_refuses_certainty(bad: float) -> None:
    with pytest.raises(DataError, match="inside"):
        log_loss(np.array([0, 1]), np.array([0.5, bad]))


def test_log_loss_of_no_rows_is_refused() -> None:
    with pytest.raises(DataError, match="no rows"):
        log_loss(np.array([]), np.array([]))


@pytest.mark.parametrize(("labels", "scores", "message"), [
    ([0, 2], [0.0, 1.0], "a label is 2"), ([0, 1], [0.0, np.nan], "1 of 2 scores are not finite"),
    ([0, 1], [0.0], "equally long"), ([0, np.nan], [0.0, 1.0], "a label is nan"),
])
def test_malformed_input_is_refused(labels: list, scores: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        auc(np.array(labels), np.array(scores))
