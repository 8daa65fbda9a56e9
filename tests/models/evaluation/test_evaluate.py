from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as reference

from contracts.errors import OneClassError
from models.evaluation.calibration import identity
from models.evaluation.evaluate import evaluate, roc


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    logits = generator.normal(-1, 1, 3000).round(1)
    return logits, (generator.random(3000) < 1 / (1 + np.exp(-logits))).astype(float), generator.integers(0, 40, 3000)


def test_figures_are_scikit_learns(rows) -> None:
    logits, labels, users = rows
    found = evaluate(logits, labels, users, identity())
    probabilities = 1 / (1 + np.exp(-logits))
    assert found.auc == pytest.approx(reference.roc_auc_score(labels, logits))
    assert found.log_loss == pytest.approx(reference.log_loss(labels, probabilities))
    assert found.predicted_over_observed == pytest.approx(probabilities.sum() / labels.sum())
    assert (found.rows, found.positives, found.gauc_users) == (3000, int(labels.sum()), 40)
    assert found.ece < 0.05


def test_probabilities_are_held_against_the_rows_that_tell(rows) -> None:
    logits, labels, users = rows
    some = np.arange(len(labels)) % 3 == 0
    found, whole = (evaluate(logits, labels, users, identity(), telling=telling) for telling in (some, None))
    alone = evaluate(logits[some], labels[some], None, identity())
    assert (found.auc, found.gauc, found.rows) == (whole.auc, whole.gauc, whole.rows)
    assert (found.log_loss, found.ece, found.predicted_over_observed) == (
        alone.log_loss, alone.ece, alone.predicted_over_observed)


def test_the_area_below_the_roc_points_is_the_auc(rows) -> None:
    logits, labels, _ = rows
    curve = roc(labels, logits)
    area = np.trapezoid(curve.true_positive_rate, curve.false_positive_rate)
    assert area == pytest.approx(reference.roc_auc_score(labels, logits))
    assert (curve.true_positive_rate[0], curve.true_positive_rate[-1]) == (0.0, 1.0)


def test_the_roc_is_thinned_to_the_asked_number_of_points(rows) -> None:
    _, labels, _ = rows
    assert len(roc(labels, np.arange(3000.0), points=50).false_positive_rate) == 50


def test_the_slot_moves_probabilities_and_no_ranking(rows) -> None:
    logits, labels, users = rows
    plain, shifted = evaluate(logits, labels, users, identity()), evaluate(logits, labels, users, identity(),
                                                                           position_logit=np.full(3000, -1.0))
    assert shifted.auc == plain.auc
    assert plain.predicted_over_observed is not None
    assert shifted.predicted_over_observed is not None
    assert shifted.predicted_over_observed < plain.predicted_over_observed


def test_without_users_there_is_no_figure_by_user(rows) -> None:
    logits, labels, _ = rows
    found = evaluate(logits, labels, None, identity())
    assert (found.gauc, found.ndcg_10) == (None, None)


def test_one_class_is_refused_with_place_and_counts(rows) -> None:
    with pytest.raises(OneClassError, match="test window: 0 of 3000"):
        evaluate(rows[0], np.zeros(3000), rows[2], identity(), where="test window")
