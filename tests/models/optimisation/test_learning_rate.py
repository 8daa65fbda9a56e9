from __future__ import annotations

import pytest

from models.optimisation.learning_rate import FALL, LEAST_GAIN, LEVEL, MOST_FALLS, Patience, Schedule, rate


def test_linear_starts_at_the_full_rate_and_ends_at_zero() -> None:
    assert [rate(0.4, "linear", progress, 0) for progress in (0.0, 0.25, 1.0)] == pytest.approx([0.4, 0.3, 0.0])
    assert rate(0.4, "linear", 1.2, 0) == 0.0  # a last epoch may have more batches than were planned


def test_constant_stays() -> None:
    assert rate(0.4, "constant", 0.0, 0) == rate(0.4, "constant", 1.0, 3) == 0.4


def test_a_plateau_falls_with_every_fall_alone() -> None:
    assert rate(0.4, "plateau", 0.9, 0) == 0.4
    assert rate(0.4, "plateau", 0.0, 2) == pytest.approx(0.4 * FALL**2)


def test_one_epoch_that_is_no_better_is_forgiven() -> None:
    patience = Patience("plateau", 2)
    figures = ((0.7, 1.0), (0.6, 1.1), (0.8, 1.1), (0.7, 1.1), (0.9, 1.1))
    assert [patience.after(score, loss) for score, loss in figures] == ["go on"] * 5
    assert patience.falls == 0


def test_epochs_of_a_level_loss_count_half() -> None:
    """A plateau may be a pass: twice the patience, and not for ever."""
    patience, level = Patience("plateau", 2), 1.0 + LEVEL / 2
    assert [patience.after(0.6, loss) for loss in (1.0, level, level, level)] == ["go on"] * 4
    assert [patience.after(0.6, level) for _ in range(2)] == ["fall", "stop"]
    mixed = Patience("constant", 2)
    assert [mixed.after(0.6, loss) for loss in (1.0, 1.1, level, level)] == ["go on", "go on", "go on", "stop"]


def test_a_plateau_falls_before_it_ends_however_its_epochs_count() -> None:
    patience = Patience("plateau", 2)
    found = [patience.after(0.6, loss) for loss in (1.0, 1.0, 1.1, 1.1, 1.0)]  # a half, one and a half, two and a half
    assert found == ["go on", "go on", "go on", "fall", "stop"]
    assert [patience.after(score, 1.1) for score in (0.7, 0.7, 0.7, 0.7)] == ["go on", "go on", "fall", "stop"]


def test_a_lower_loss_is_better_too() -> None:
    patience = Patience("plateau", 1)
    assert [patience.after(0.7, loss) for loss in (1.0, 0.9, 0.8)] == ["go on"] * 3
    assert [patience.after(0.7, 0.8 * (1.0 - LEAST_GAIN / 2)) for _ in range(2)] == ["go on", "fall"]


def test_a_fall_that_helps_nothing_ends_the_run() -> None:
    patience = Patience("plateau", 2)
    assert [patience.after(0.7, loss) for loss in (1.0, 1.1, 1.1, 1.1)] == ["go on", "go on", "fall", "stop"]


def test_a_run_ends_at_the_plateau_after_the_last_fall() -> None:
    patience, score, verdicts = Patience("plateau", 1), 0.5, []
    for _ in range(MOST_FALLS + 1):
        score += 0.1
        verdicts += [patience.after(score, 1.0), patience.after(score, 1.1)]
    assert verdicts == ["go on", "fall"] * MOST_FALLS + ["go on", "stop"]


@pytest.mark.parametrize("schedule", ["linear", "constant"])
def test_where_nothing_falls_patience_ends_the_run(schedule: Schedule) -> None:
    patience = Patience(schedule, 2)
    assert [patience.after(0.7, loss) for loss in (1.0, 1.1, 1.1)] == ["go on", "go on", "stop"]
