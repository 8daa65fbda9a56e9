"""Off-policy estimates where the worth of the policy is known: the simulator's truth; and on a real random log."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from benchmarks.models.off_policy import against_truth, main, marketplace_bandit, on_the_real_log, read_open_bandit
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


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


def write_log(folder: Path, rows: int) -> Path:
    """In the Open Bandit Dataset's columns: items shown at random, of which the first is clicked most."""
    draw = np.random.default_rng(4)
    item = draw.integers(0, 4, rows)
    table = pa.table({
        "timestamp": [f"2019-11-24 00:{second // 60:02d}:{second % 60:02d}" for second in range(rows)],
        "item_id": item, "position": draw.integers(1, 4, rows),
        "click": (draw.random(rows) < np.where(item == 0, 0.3, 0.05)).astype(np.int64),
        "propensity_score": np.full(rows, 0.25), "user_feature_0": draw.choice(["a", "b"], rows),
    })
    csv.write_csv(table, folder / "men.csv")
    return folder


def test_both_logs_are_printed_with_every_estimator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--repeats", "3", "--data", str(write_log(tmp_path, 900))])
    found = last_line(capsys.readouterr().out)
    assert all_finite(found["marketplace"])
    assert set(found["marketplace"]) == {"IPS", "SNIPS", "DR"}
    assert all(0 <= row["covered"] <= 1 for row in found["marketplace"].values())
    assert all(set(policy) == {"IPS", "SNIPS", "DR"} for policy in found["open_bandit"].values())


def test_on_a_random_log_the_uniform_policy_is_worth_its_mean_and_the_best_item_more(tmp_path: Path) -> None:
    log = read_open_bandit(write_log(tmp_path, 1000) / "men.csv")
    policies = on_the_real_log(log)
    uniform = policies["uniform (the log's own)"]
    assert uniform["IPS"].value == pytest.approx(log.click[500:].mean())
    assert uniform["IPS"].effective_rows == pytest.approx(500)
    assert policies["the model's best item"]["SNIPS"].value > uniform["SNIPS"].high


def test_a_wrong_option_is_refused() -> None:
    assert refuses(main, "--repeats", "often")


@pytest.mark.slow
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
