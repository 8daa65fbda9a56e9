from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.plan import Plan
from benchmarks.peers.runs import Match, log_loss, median, sides_of
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


@pytest.mark.slow
def test_each_side_takes_its_best_penalty_and_every_seed(
    out: Path, plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The platform on both sides: equal plans give equal runs, another seed another."""
    sides = sides_of(out, out, Path(sys.executable))
    match = Match({"sluice": sides["sluice"], "fuxictr": sides["sluice"]}, examples(out), tmp_path)
    match.run("sluice", replace(plan, l2=5.0))
    penalties = [match.run("sluice", replace(plan, l2=l2, seed=0)).validation_auc for l2 in (0.0, 5000.0)]
    assert penalties[0] != penalties[1]
    assert capsys.readouterr().out.count("validation AUC") == 3
