from __future__ import annotations

import pytest

from models.training.learning_rate import FALL, rate


def test_linear_starts_at_the_full_rate_and_ends_at_zero() -> None:
    assert [rate(0.4, "linear", progress, 0) for progress in (0.0, 0.25, 1.0)] == pytest.approx([0.4, 0.3, 0.0])
    assert rate(0.4, "linear", 1.2, 0) == 0.0  # a last epoch may have more batches than were planned


def test_constant_stays() -> None:
    assert rate(0.4, "constant", 0.0, 0) == rate(0.4, "constant", 1.0, 3) == 0.4


def test_a_plateau_falls_with_every_miss_alone() -> None:
    assert rate(0.4, "plateau", 0.9, 0) == 0.4
    assert rate(0.4, "plateau", 0.0, 2) == pytest.approx(0.4 * FALL**2)
