"""Against FuxiCTR itself, in an environment that `sluice bench peers` made: setting it up takes too long for a test."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.environment import can_import
from benchmarks.peers.peers import PEER
from benchmarks.peers.plan import Outcome, Plan
from benchmarks.peers.rows import write_rows
from benchmarks.peers.runs import Match, sides_of
from benchmarks.peers.sluice_ranker import examples


@pytest.fixture(scope="module")
def python() -> Path:
    found = Path(os.environ.get("SLUICE_FUXICTR", PEER)) / "bin" / "python"
    if not can_import(found, ["fuxictr"]):
        pytest.skip(f"no FuxiCTR at {found}: `sluice bench peers` sets it up")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("model", ["dnn", "dcn_v2", "deep_fm", "final_mlp"])
def test_every_model_trains_on_the_rows(out: Path, plan: Plan, python: Path, tmp_path: Path, model: str) -> None:
    windows = examples(out)
    write_rows(windows["train"].spec, windows, tmp_path / "rows")
    match = Match(sides_of(out, tmp_path / "rows", python), windows, tmp_path)
    made = match.run("fuxictr", replace(plan, model=model))
    assert made.test.shape == (200,)
    assert np.isfinite(made.log_loss)
    assert Outcome.read(made.plan.out) == made.outcome
    assert 1 <= made.outcome.best_epoch <= made.outcome.epochs <= 2
