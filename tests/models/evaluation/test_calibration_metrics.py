from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from contracts.errors import DataError
from models.evaluation.calibration_metrics import ece, predicted_over_observed, predicted_over_observed_by, reliability


def true_probabilities(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    probabilities = generator.uniform(0.01, 0.6, rows)
    return (generator.random(rows) < probabilities).astype(int), probabilities


def test_bins_are_scikit_learns_quantile_bins() -> None:
    labels, probabilities = true_probabilities(1000)
    observed, predicted = calibration_curve(labels, probabilities, n_bins=10, strategy="quantile")
    found = reliability(labels, probabilities, 10)
    np.testing.assert_allclose(found.predicted, predicted, atol=1e-3)
    np.testing.assert_allclose(found.observed, observed, atol=0.011)
    assert found.rows.tolist() == [100] * 10


def test_ece_of_true_probabilities_is_small_and_of_shifted_ones_is_the_shift() -> None:
    labels, probabilities = true_probabilities(200_000)
    assert ece(labels, probabilities) < 0.01
    assert ece(labels, probabilities + 0.3) == pytest.approx(0.3, abs=0.01)


def test_equal_predictions_share_a_bin_so_that_ece_is_their_gap() -> None:
    assert ece(np.array([1, 0, 0, 0]), np.full(4, 0.5)) == pytest.approx(0.25)


@given(st.integers(0, 1000))
def test_row_order_changes_nothing(seed: int) -> None:
    labels, probabilities = true_probabilities(97, seed)
    probabilities = probabilities.round(1)
    order = np.random.default_rng(seed).permutation(97)
    assert ece(labels[order], probabilities[order]) == pytest.approx(ece(labels, probabilities), abs=1e-12)


def test_predicted_over_observed_overall_and_by_slice() -> None:
    labels, probabilities = np.array([1, 0, 1, 0, 0]), np.array([0.5, 0.1, 0.9, 0.1, 0.4])
    assert predicted_over_observed(labels, probabilities) == pytest.approx(1.0)
    found = predicted_over_observed_by(labels, probabilities, np.array(["a", "a", "b", "b", "c"]))
    assert found["a"] == (pytest.approx(0.6), 2, 1)
    assert found["b"] == (pytest.approx(1.0), 2, 1)
    assert found["c"] == (None, 1, 0)


def test_nothing_observed_is_none() -> None:
    assert predicted_over_observed(np.zeros(3), np.full(3, 0.2)) is None


def test_logits_and_empty_windows_are_refused() -> None:
    with pytest.raises(DataError, match="not logits"):
        ece(np.array([0, 1]), np.array([-1.0, 2.0]))
    with pytest.raises(DataError, match="no rows"):
        ece(np.array([]), np.array([]))
