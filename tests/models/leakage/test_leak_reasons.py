"""Every suspicion fires on its own figure and on no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contracts.summaries.leaks import FieldFigures
from models.leakage.leak_reasons import reasons, standard_error

QUIET = FieldFigures(auc=0.78, standard_error=0.005, irreplaceable=0.05, present_positive=0.9, present_negative=0.8,
                     later_auc=0.72, day_correlation=0.2, days=30)


def test_a_strong_field_that_others_can_replace_is_left_alone() -> None:
    assert reasons(QUIET) == {}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("near copy", {"auc": 0.99, "later_auc": 0.98}),
        ("irreplaceable", {"irreplaceable": 0.3}),
        ("after", {"present_positive": 1.0, "present_negative": 0.01}),
        ("after", {"present_positive": 0.1, "present_negative": 0.9}),
        ("clock", {"day_correlation": -0.97}),
        ("fading", {"later_auc": 0.52}),
    ],
)
def test_each_figure_raises_its_own_suspicion(kind: str, change: dict[str, Any]) -> None:
    assert list(reasons(QUIET.model_copy(update=change))) == [kind]


def test_a_field_of_the_labels_own_column_is_suspected_whatever_its_figures() -> None:
    assert "'rating'" in reasons(QUIET.model_copy(update={"auc": 0.5}), "rating")["label column"]


@pytest.mark.parametrize(
    "change",
    [
        {"auc": 0.96, "standard_error": 0.02, "later_auc": 0.9},  # not surely a near copy
        {"irreplaceable": 0.9, "auc": 0.75},  # weak: it says little, though only it says it
        {"day_correlation": 0.99, "days": 2},
        {"auc": 0.66, "later_auc": 0.5},
        {"later_auc": None, "day_correlation": None, "irreplaceable": None},
    ],
)
def test_what_is_not_sure_is_not_said(change: dict[str, Any]) -> None:
    assert reasons(QUIET.model_copy(update=change)) == {}


def test_the_standard_error_is_the_spread_of_repeated_draws() -> None:
    random = np.random.default_rng(0)
    positives, negatives, drawn = 40, 200, []
    for _ in range(600):
        high, low = random.exponential(1, positives) * 3, random.exponential(1, negatives)
        drawn.append((high[:, None] > low[None]).mean())
    assert standard_error(float(np.mean(drawn)), positives, negatives) == pytest.approx(np.std(drawn), rel=0.1)
