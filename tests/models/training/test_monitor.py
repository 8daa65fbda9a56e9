from __future__ import annotations

import numpy as np
import pytest

from models.training.monitor import Validated, validated

LABELS, USERS = np.array([0.0, 1.0, 0.0, 1.0]), np.array([1, 1, 2, 2])


def test_the_figure_wanted_decides() -> None:
    found = Validated(loss=0.3, auc=0.8, gauc=0.6)
    assert [found.score(name) for name in ("auc", "gauc", "log_loss")] == [0.8, 0.6, -0.3]  # type: ignore[arg-type]


def test_auc_over_all_rows_and_gauc_within_users() -> None:
    """Each user's click is ranked first, but user 1's rows lie above user 2's."""
    found = validated(0.5, LABELS, np.array([3.0, 4.0, 1.0, 2.0]), USERS, "gauc")
    assert (found.auc, found.gauc) == (pytest.approx(0.75), 1.0)


def test_one_class_and_logits_that_are_not_finite_leave_the_loss() -> None:
    for labels, logits in ((np.ones(4), np.arange(4.0)), (LABELS, np.array([0.0, np.inf, 1.0, 2.0]))):
        found = validated(0.5, labels, logits, USERS, "auc")
        assert found.auc is None
        assert found.score("auc") == -0.5
