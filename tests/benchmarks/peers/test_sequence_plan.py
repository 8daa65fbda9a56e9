from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.peers.sequence_plan import SequenceLog, SequencePlan


def log() -> SequenceLog:
    """Three users with four, two and three actions, of whom the first and the last are asked."""
    return SequenceLog(np.array([0, 4, 6, 9]), np.array([2, 3, 4, 5, 3, 2, 5, 4, 6]), np.array([0, 2]), 7)


def test_a_plan_and_a_log_are_read_as_they_were_written(tmp_path: Path) -> None:
    plan = SequencePlan(rows="log.npz", out="out", seed=1, threads=1, batch=64, users=8, negatives=None, width=16,
                        learning_rate=0.01)
    assert SequencePlan.read(plan.write(tmp_path / "of" / "plan.json")) == plan
    for made, known in zip(SequenceLog.read(log().write(tmp_path / "of" / "log.npz")), log(), strict=True):
        np.testing.assert_array_equal(made, known)


def test_the_last_action_of_who_is_asked_is_the_target_and_does_not_train() -> None:
    assert log().targets.tolist() == [5, 6]
    assert np.flatnonzero(log().tested).tolist() == [3, 8]
    assert log().owners.tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 2]


def test_predictions_are_actions_that_train_but_a_users_first() -> None:
    assert log().predictions(50) == 2 + 1 + 1
    assert log().predictions(1) == 3
