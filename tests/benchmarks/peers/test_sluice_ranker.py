from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.peers.plan import Outcome, Plan
from benchmarks.peers.sluice_ranker import run, settings_of


@pytest.mark.parametrize("model", ["dnn", "dcn_v2"])
def test_a_run_leaves_probabilities_and_its_outcome(plan: Plan, tmp_path: Path, model: str) -> None:
    run(str(replace(plan, model=model).write(tmp_path / "plan.json")))
    torch.set_num_threads(1)
    for window in ("validation", "test"):
        probabilities = np.load(tmp_path / f"{window}.npy")
        assert probabilities.shape == (200,)
        assert ((probabilities > 0) & (probabilities < 1)).all()
    outcome = Outcome.read(tmp_path)
    assert 1 <= outcome.best_epoch <= outcome.epochs <= 2
    assert outcome.rows_per_second > 0
    assert outcome.seconds_to_best > 0
    assert outcome.peak_mib > 50


def test_the_plan_is_what_training_is_told(plan: Plan) -> None:
    settings = settings_of(replace(plan, precision="bf16"))
    assert (settings.embedding_dim, settings.hidden, settings.batch_size) == (4, (8,), 200)
    assert (settings.embedding_l2, settings.cross_rank, settings.precision) == (10.0, 0, "bf16")
