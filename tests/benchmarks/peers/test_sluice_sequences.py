from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.peers.plan import Outcome
from benchmarks.peers.sequence_plan import LISTED, SequencePlan
from benchmarks.peers.sluice_sequences import run, settings_of


@pytest.mark.parametrize("negatives", [None, 5])
def test_a_run_leaves_recommendations_and_its_outcome(
    sequence_plan: SequencePlan, tmp_path: Path, negatives: int | None
) -> None:
    run(str(replace(sequence_plan, negatives=negatives).write(tmp_path / "plan.json")))
    torch.set_num_threads(1)
    found, outcome = np.load(tmp_path / "test.npy"), Outcome.read(tmp_path)
    assert found.shape == (30, LISTED)
    assert (outcome.epochs, outcome.best_epoch) == (2, 2)
    assert outcome.rows_per_second > 0
    assert outcome.seconds_to_best > 0
    again = tmp_path / "again"
    again.mkdir()
    run(str(replace(sequence_plan, negatives=negatives, out=str(again)).write(again / "plan.json")))
    np.testing.assert_array_equal(np.load(again / "test.npy"), found)


def test_the_plan_is_what_training_is_told(sequence_plan: SequencePlan) -> None:
    settings = settings_of(sequence_plan, 25)
    assert (settings.negatives, settings.epochs, settings.batch) == (25, 2, 40)
    assert (settings.encoder.width, settings.encoder.length, settings.encoder.dropout) == (8, 6, 0.3)
    assert settings_of(replace(sequence_plan, negatives=5), 25).negatives == 5
