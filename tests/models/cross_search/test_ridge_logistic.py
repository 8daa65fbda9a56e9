from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from models.cross_search.ridge_logistic import Column, fit


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    codes = generator.integers(0, (3, 7, 20), size=(2000, 3))
    logit = (codes[:, 0] == 1) * 1.5 + generator.normal(0, 1, 20)[codes[:, 2]] - 1
    return codes, (generator.random(2000) < 1 / (1 + np.exp(-logit))).astype(float)


@pytest.mark.parametrize("ridge", [0.5, 4.0, 50.0])
def test_finds_the_optimum_that_scikit_learn_finds(data: tuple[np.ndarray, np.ndarray], ridge: float) -> None:
    codes, label = data
    ours = fit([Column(codes[:, i], size, ridge) for i, size in enumerate((3, 7, 20))], label)
    inputs = OneHotEncoder(categories=[range(s) for s in (3, 7, 20)]).fit_transform(codes)
    theirs = LogisticRegression(C=1 / ridge, tol=1e-10, max_iter=2000).fit(inputs, label)
    np.testing.assert_allclose(ours.logits(list(codes.T)), theirs.decision_function(inputs), atol=5e-3)


def test_each_column_has_its_own_penalty(data: tuple[np.ndarray, np.ndarray]) -> None:
    codes, label = data
    free, bound = (fit([Column(codes[:, 0], 3, 1.0), Column(codes[:, 2], 20, ridge)], label) for ridge in (1.0, 1e6))
    assert np.abs(bound.weights.numpy()[3:]).max() < 1e-2 < np.abs(free.weights.numpy()[3:]).max()


def test_without_signal_it_answers_the_rate() -> None:
    label = (np.arange(400) % 4 == 0).astype(float)
    model = fit([Column(np.arange(400) // 4 % 5, 5, 1.0)], label)
    np.testing.assert_allclose(model.logits([np.arange(5)]), np.log(1 / 3), atol=1e-3)


def test_a_code_beyond_its_column_is_refused() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        fit([Column(np.array([0, 1, 2, 5]), 5, 1.0)], np.array([0.0, 1.0, 0.0, 1.0]))
