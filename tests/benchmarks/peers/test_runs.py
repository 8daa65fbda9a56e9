from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.plan import Outcome, Plan
from benchmarks.peers.runs import Match, Run, log_loss, median, sides_of
from benchmarks.peers.sluice_ranker import examples
from contracts.errors import SluiceError


def test_log_loss_is_what_the_labels_surprise() -> None:
    assert log_loss(np.array([1.0, 0.0]), np.array([0.5, 0.75])) == pytest.approx((np.log(2) + np.log(4)) / 2)


def test_the_median_is_that_of_two_the_mean() -> None:
    assert median([3.0, 1.0]) == 2.0


def test_a_process_that_fails_says_why(out: Path, plan: Plan, tmp_path: Path) -> None:
    match = Match(sides_of(out, tmp_path / "rows", Path(sys.executable)), examples(out), tmp_path)
    with pytest.raises(SluiceError, match=r"fuxictr_ranker failed(?s:.*)No module named 'fuxictr'"):
        match.run("fuxictr", plan)


@pytest.mark.parametrize(("merge", "seed"), [(True, 3), (True, 4), (False, 3)])
def test_a_run_that_was_told_the_same_is_taken_as_it_lies(
    out: Path, plan: Plan, tmp_path: Path, merge: bool, seed: int
) -> None:
    """The other side's interpreter here lacks its package, so that a run would fail."""
    match = Match(sides_of(out, tmp_path / "rows", Path(sys.executable)), examples(out), tmp_path, merge)
    folder = tmp_path / "dnn-fuxictr-fp32-10-3"
    replace(plan, rows="elsewhere", seed=seed).write(folder / "plan.json")
    Outcome(rows_per_second=5.0, seconds_to_best=2.0, epochs=3, best_epoch=1, peak_mib=1.0).write(folder)
    for window in ("validation", "test"):
        np.save(folder / f"{window}.npy", np.linspace(0.1, 0.9, 200))
    if merge and seed == plan.seed:
        assert match.run("fuxictr", plan).outcome.rows_per_second == 5.0
    else:
        with pytest.raises(SluiceError, match="No module named 'fuxictr'"):
            match.run("fuxictr", plan)


class Mirrored(Match):
    """The platform on both sides, so that equal plans must give equal runs."""

    def run(self, side: str, plan: Plan) -> Run:
        return super().run("sluice", plan)


@pytest.mark.slow
def test_each_side_takes_the_penalty_that_was_best_on_validation(
    out: Path, plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    match = Mirrored(sides_of(out, out, Path(sys.executable)), examples(out), tmp_path)
    found = match.tuned(plan, [0.0, 5000.0], {"sluice": ["fp32"], "fuxictr": ["fp32"]}, seeds=1)
    [ours], [theirs] = (found[side]["fp32"] for side in ("sluice", "fuxictr"))
    aucs = re.findall(r"validation AUC ([\d.]+)", capsys.readouterr().out)
    assert len(aucs) == 4
    assert f"{ours.validation_auc:.4f}" == max(aucs)
    np.testing.assert_array_equal(ours.test, theirs.test)
