from __future__ import annotations

import numpy as np
import pytest

from models.leakage.field_alone import STRENGTH, scores, stack, together
from models.leakage.field_columns import FieldColumn

CODES = np.array([[2], [2], [3], [3], [0], [2]])
LABEL = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])


def column(codes: np.ndarray, size: int) -> FieldColumn:
    return FieldColumn("f", codes, size, np.any(codes > 0, axis=1, keepdims=False))


def odds(positives: float, rows: float, overall: float) -> float:
    rate = (positives + STRENGTH * overall) / (rows + STRENGTH)
    return float(np.log(rate / (1 - rate)))


def test_a_value_scores_the_log_odds_of_its_smoothed_rate_on_the_fitted_rows_alone() -> None:
    fit = np.array([True, True, True, True, True, False])
    expected = {2: odds(1, 2, 0.6), 3: odds(2, 2, 0.6), 0: odds(0, 1, 0.6)}
    assert scores(column(CODES, 5), LABEL, fit) == pytest.approx([expected[c] for c in CODES[:, 0]])


def test_a_list_scores_the_mean_of_its_values_and_an_empty_one_what_empty_ones_do() -> None:
    codes = np.array([[2, 3], [2, 0], [3, 0], [0, 0]])
    label, every = np.array([1.0, 0.0, 1.0, 0.0]), np.ones(4, dtype=bool)
    two, three, empty = odds(1, 2, 0.5), odds(2, 2, 0.5), odds(1, 4, 0.5)
    expected = [(two + three) / 2, two, three, empty]
    assert scores(column(codes, 4), label, every) == pytest.approx(expected)


def test_the_stack_solves_the_ridge_equations() -> None:
    random = np.random.default_rng(1)
    inputs = random.normal(size=(400, 3))
    label = (random.random(400) < 1 / (1 + np.exp(-inputs @ [1.0, -2.0, 0.0]))).astype(float)
    weights = stack(inputs, label)
    chance = 1 / (1 + np.exp(-(inputs @ weights[:3] + weights[3])))
    assert inputs.T @ (label - chance) == pytest.approx(weights[:3], abs=1e-6)
    assert (label - chance).sum() == pytest.approx(0, abs=1e-6)


def test_a_constant_field_adds_nothing() -> None:
    random = np.random.default_rng(2)
    inputs = np.column_stack([random.normal(size=300), np.full(300, 7.0)])
    label = (inputs[:, 0] + random.normal(size=300) > 0).astype(float)
    fit = np.arange(300) < 200
    both, one = together(inputs, label, fit, ~fit), together(inputs[:, :1], label, fit, ~fit)
    assert both == pytest.approx(one, abs=1e-6)
