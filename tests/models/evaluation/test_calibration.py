from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.bundle.bundle import load_weights, save_weights
from contracts.errors import DataError, OneClassError
from models.evaluation.calibration import SMALLEST, Calibration, fit, identity
from models.evaluation.calibration_metrics import ece, predicted_over_observed
from models.evaluation.metrics import auc, log_loss

KINDS = ("isotonic", "platt")


def overconfident(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits twice as spread and 1 too high, labels, true probabilities; click rate about 6%."""
    generator = np.random.default_rng(seed)
    true = generator.normal(-3, 1, rows)
    probability = 1 / (1 + np.exp(-true))
    return 2 * true + 1, (generator.random(rows) < probability).astype(float), probability


@pytest.mark.parametrize("kind", KINDS)
def test_calibration_mends_overconfident_logits_on_rows_it_has_not_seen(kind) -> None:
    logits, labels, _ = overconfident(40_000)
    new_logits, new_labels, true = overconfident(40_000, seed=1)
    probabilities = fit(kind, logits, labels).apply(new_logits)
    raw = identity().apply(new_logits)
    assert ece(new_labels, probabilities) < 0.006 < ece(new_labels, raw)
    assert log_loss(new_labels, probabilities) < log_loss(new_labels, raw)
    assert np.abs(probabilities - true).mean() < 0.01
    assert predicted_over_observed(new_labels, probabilities) == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize("kind", KINDS)
def test_mean_prediction_on_the_fitting_rows_is_the_label_rate(kind) -> None:
    logits, labels, _ = overconfident(5000)
    tolerance = 1e-9 if kind == "isotonic" else 0.01
    assert predicted_over_observed(labels, fit(kind, logits, labels).apply(logits)) == pytest.approx(1, abs=tolerance)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 400), st.booleans())
def test_isotonic_strictly_increases_and_keeps_every_ranking(seed: int, rows: int, rounded: bool) -> None:
    logits, labels, _ = overconfident(rows, seed)
    labels[:2] = [0, 1]
    logits = logits.round(0) if rounded else logits
    curve = fit("isotonic", logits, labels)
    grid = np.linspace(logits.min() - 3, logits.max() + 3, 500)
    probabilities = curve.apply(grid)
    inside = (probabilities > 2 * SMALLEST) & (probabilities < 1 - 2 * SMALLEST)
    assert (np.diff(probabilities) >= 0).all()
    assert (np.diff(probabilities)[inside[1:] & inside[:-1]] > 0).all()
    assert auc(labels, curve.apply(logits)) == pytest.approx(auc(labels, logits), abs=1e-12)


def test_isotonic_of_logits_without_information_shifts_them_to_the_label_rate() -> None:
    logits, _, _ = overconfident(2000)
    labels = np.zeros(2000)
    labels[np.argsort(logits)[::20]] = 1
    labels[np.argsort(logits)[:50]] = 1
    curve = fit("isotonic", logits, labels)
    assert predicted_over_observed(labels, curve.apply(logits)) == pytest.approx(1)


def test_few_positives_leave_one_block() -> None:
    logits, labels, _ = overconfident(500)
    labels[:] = 0
    labels[:4] = 1
    assert len(fit("isotonic", logits, labels).logits) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_stay_off_zero_and_one(kind) -> None:
    logits, labels, _ = overconfident(2000)
    probabilities = fit(kind, logits, labels).apply(np.array([-1e6, 1e6]))
    np.testing.assert_allclose(probabilities, [SMALLEST, 1 - SMALLEST])


def test_identity_undoes_negative_down_sampling() -> None:
    """A share w of negatives kept multiplies the odds by 1 / w; the true probability is p / (p + (1 - p) / w)."""
    logits, w = np.linspace(-4, 4, 9), 0.1
    p = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(identity(w).apply(logits), p / (p + (1 - p) / w))
    np.testing.assert_allclose(identity().apply(logits), p)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_round_trip_through_a_file(kind, tmp_path) -> None:
    logits, labels, _ = overconfident(3000)
    curve = fit(kind, logits, labels)
    save_weights(tmp_path / "calibration.safetensors", curve.arrays())
    again = Calibration.from_arrays(load_weights(tmp_path / "calibration.safetensors"))
    np.testing.assert_array_equal(again.apply(logits), curve.apply(logits))


@pytest.mark.parametrize("kind", KINDS)
def test_one_class_is_refused(kind) -> None:
    with pytest.raises(OneClassError, match="0 of 5"):
        fit(kind, np.arange(5.0), np.zeros(5))


def test_platt_refuses_logits_that_rank_backwards() -> None:
    logits, labels, _ = overconfident(3000)
    with pytest.raises(DataError, match="isotonic"):
        fit("platt", -logits, labels)


def test_platt_has_an_answer_for_separable_rows() -> None:
    curve = fit("platt", np.arange(100.0), (np.arange(100) > 49).astype(float))
    assert 0 < curve.slope < 10


@pytest.mark.parametrize("arrays", [
    {"logits": np.zeros(1), "log_odds": np.zeros(1), "slope": np.array([0.0])},
    {"logits": np.array([0.0, 0.0]), "log_odds": np.array([0.0, 1.0]), "slope": np.ones(1)},
    {"logits": np.array([0.0, 1.0]), "log_odds": np.array([1.0, 0.0]), "slope": np.ones(1)},
    {"logits": np.zeros(0), "log_odds": np.zeros(0), "slope": np.ones(1)},
])
def test_a_stored_curve_that_does_not_increase_is_refused(arrays) -> None:
    with pytest.raises(DataError, match="does not increase"):
        Calibration.from_arrays(arrays)


def test_a_missing_array_is_named() -> None:
    with pytest.raises(DataError, match="'slope'"):
        Calibration.from_arrays({"logits": np.zeros(1), "log_odds": np.zeros(1)})


@pytest.mark.parametrize("kind", KINDS)
def test_of_drawn_rows_the_probability_is_that_among_all(kind) -> None:
    """200,000 rows of which positives and some negatives are there, popular ones ten times as often as the others."""
    random = np.random.default_rng(3)
    truth = random.normal(-4.0, 1.0, 200_000)
    positive = random.random(len(truth)) < 1 / (1 + np.exp(-truth))
    draws = np.where(truth > -4.0, 0.2, 0.02)
    there = positive | (random.random(len(truth)) < draws)
    logits = 2.0 * truth[there] + 3.0
    curve = fit(kind, logits, positive[there].astype(float), np.log(draws[there]))
    found = curve.apply(2.0 * truth + 3.0)
    assert found.sum() / positive.sum() == pytest.approx(1, abs=0.06)
    for part in (truth < -4.5, truth > -3.5):
        assert found[part].sum() / positive[part].sum() == pytest.approx(1, abs=0.1)
    among_drawn = curve.apply(logits, np.log(draws[there]))
    assert among_drawn.sum() / positive.sum() == pytest.approx(1, abs=0.06)


def test_a_network_of_rows_drawn_alike_is_undrawn_by_one_shift() -> None:
    logits, labels, _ = overconfident(3000)
    curve = fit("platt", logits, labels)
    odds = [p / (1 - p) for p in (curve.apply(logits), curve.undrawn(np.log(0.1)).apply(logits))]
    np.testing.assert_allclose(odds[1], 0.1 * odds[0])
