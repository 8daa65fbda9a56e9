"""Off-policy estimates where the worth of the policy is known: the simulator's truth; and on a real random log."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.models.off_policy import against_truth, marketplace_bandit, on_the_real_log, read_open_bandit


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, float]]:
    return against_truth(repeats=150, rows=3000, seed=1)


@pytest.mark.parametrize("name", ["IPS", "SNIPS", "DR"])
def test_the_mean_over_logs_is_the_true_worth_and_intervals_hold_it(found: dict, name: str) -> None:
    one = found[name]
    assert one["mean"] == pytest.approx(one["truth"], abs=4 * one["deviation"] / np.sqrt(150))
    assert one["standard_error"] == pytest.approx(one["deviation"], rel=0.2)
    assert 0.88 <= one["covered"] <= 0.99


def test_the_policy_judged_is_not_the_one_that_ran_and_a_naive_mean_would_miss_its_worth() -> None:
    bandit = marketplace_bandit(seed=1, pool=4000)
    ran = float((bandit.logging * bandit.chance).sum(axis=1).mean())
    assert bandit.truth > 1.2 * ran


def test_a_real_uniformly_random_log() -> None:
    folder = os.environ.get("OPEN_BANDIT")
    if folder is None:
        pytest.skip("OPEN_BANDIT names no folder with men.csv")
    log = read_open_bandit(Path(folder) / "men.csv")
    policies = on_the_real_log(log)
    uniform = policies["uniform (the log's own)"]
    later = log.click[len(log.click) // 2 :]
    assert uniform["IPS"].value == pytest.approx(later.mean(), rel=1e-4)
    assert uniform["IPS"].effective_rows == pytest.approx(len(later))
    best = policies["the model's best item"]
    assert best["SNIPS"].effective_rows < 400
    assert best["IPS"].rewarded < 20 <= uniform["IPS"].rewarded
