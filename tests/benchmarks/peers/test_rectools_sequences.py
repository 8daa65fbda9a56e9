"""Against RecTools itself, in an environment that `sluice bench sequence_peers` made: it takes long to set up."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.environment import can_import
from benchmarks.peers.sequence_peers import MODULES, PEER, ran
from benchmarks.peers.sequence_plan import SequenceLog, SequencePlan


@pytest.fixture(scope="module")
def python() -> Path:
    found = Path(os.environ.get("SLUICE_RECTOOLS", PEER)) / "bin" / "python"
    if not can_import(found, MODULES):
        pytest.skip(f"no RecTools at {found}: `sluice bench sequence_peers` sets it up")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("negatives", [None, 5])
def test_it_trains_on_what_was_left_and_recommends_what_was_not_taken(
    sequence_plan: SequencePlan, python: Path, negatives: int | None
) -> None:
    log = SequenceLog.read(sequence_plan.rows)
    made = ran("rectools", replace(sequence_plan, negatives=negatives), log, python)
    found = np.load(Path(sequence_plan.out, "test.npy"))
    assert found.shape == (30, 10)
    assert ((found >= 2) & (found < log.table)).all()
    for user, listed in zip(log.asked, found, strict=True):
        assert not set(listed) & set(log.items[log.offsets[user]:log.offsets[user + 1] - 1])
    assert made.outcome.rows_per_second > 0
