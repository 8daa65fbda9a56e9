from __future__ import annotations

import pytest

from contracts.config.training import Train
from models.training.learning_rate import rate


def test_linear_starts_at_the_full_rate_and_ends_at_zero() -> None:
    settings = Train(learning_rate=0.4, schedule="linear")
    assert [rate(settings, progress) for progress in (0.0, 0.25, 1.0)] == pytest.approx([0.4, 0.3, 0.0])
    assert rate(settings, 1.2) == 0.0  # a last epoch may have more batches than were planned


def test_constant_stays() -> None:
    settings = Train(learning_rate=0.4, schedule="constant")
    assert rate(settings, 0.0) == rate(settings, 1.0) == 0.4
