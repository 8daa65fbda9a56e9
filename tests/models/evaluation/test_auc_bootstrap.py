from __future__ import annotations

import math

import numpy as np
import pytest

from contracts.errors import DataError, OneClassError
from models.evaluation.auc_bootstrap import _SortedRows, bootstrap
from models.evaluation.metrics import auc


def clicks(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, rows)
    return labels, np.round(labels + generator.normal(0, 1.5, rows), 1)


def test_integer_weights_are_repeated_rows() -> None:
    labels, scores = clicks(80)
    weight = np.random.default_rng(1).integers(0, 4, 80)
    repeated = auc(np.repeat(labels, weight), np.repeat(scores, weight))
    assert _SortedRows(labels, scores).auc(weight.astype(float)) == pytest.approx(repeated)


def test_standard_error_of_independent_rows_is_hanley_and_mcneils() -> None:
    """Hanley and McNeil 1982 give the standard error of an AUC of independent rows in closed form."""
    labels, scores = clicks(2000)
    found = bootstrap(labels, scores, np.arange(2000), draws=400)
    a, p = found.value, int(labels.sum())
    n = 2000 - p
    first, second = a / (2 - a), 2 * a * a / (1 + a)
    expected = math.sqrt((a * (1 - a) + (p - 1) * (first - a * a) + (n - 1) * (second - a * a)) / (p * n))
    assert found.value == auc(labels, scores)
    assert found.standard_error == pytest.approx(expected, rel=0.2)
    assert found.low < found.value < found.high


def test_rows_of_one_user_are_drawn_together() -> None:
    labels, scores = clicks(300)
    alone = bootstrap(labels, scores, np.arange(300))
    copies = bootstrap(np.tile(labels, 9), np.tile(scores, 9), np.tile(np.arange(300), 9))
    assert copies.standard_error == pytest.approx(alone.standard_error)


def test_a_paired_difference_of_equal_models_is_exactly_zero() -> None:
    labels, scores = clicks(300)
    found = bootstrap(labels, scores, np.arange(300), baseline=scores * 2)
    assert (found.value, found.standard_error) == (0.0, 0.0)


def test_pairing_removes_what_two_models_share() -> None:
    labels, scores = clicks(1000)
    rival = scores + np.random.default_rng(5).normal(0, 0.2, 1000)
    paired = bootstrap(labels, scores, np.arange(1000), baseline=rival).standard_error
    assert paired < bootstrap(labels, scores, np.arange(1000)).standard_error / 2


def test_undefined_cases_are_refused() -> None:
    labels, scores = clicks(50)
    with pytest.raises(OneClassError):
        bootstrap(np.zeros(50), scores, np.arange(50))
    with pytest.raises(DataError, match="found 1"):
        bootstrap(labels, scores, np.zeros(50))
    with pytest.raises(DataError, match="draws hold both classes"):
        bootstrap(labels, scores, np.arange(50), draws=1)
