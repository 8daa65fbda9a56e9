"""Against RecTools itself, in an environment that `sluice bench sequence_peers` made: it takes long to set up."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.sequence_peers import PEER, ran
from benchmarks.peers.sequence_plan import SequenceLog, SequencePlan

PYTHON = Path(os.environ.get("SLUICE_RECTOOLS", PEER)) / "bin" / "python"


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason=f"no RecTools at {PYTHON}: `sluice bench sequence_peers` sets it up")
@pytest.mark.parametrize("negatives", [None, 5])
def test_it_trains_on_what_was_left_and_recommends_what_was_not_taken(
    sequence_plan: SequencePlan, negatives: int | None
) -> None:
    log = SequenceLog.read(sequence_plan.rows)
    made = ran("rectools", replace(sequence_plan, negatives=negatives), log, PYTHON)
    found = np.load(Path(sequence_plan.out, "test.npy"))
    assert found.shape == (30, 10)
    assert ((found >= 2) & (found < log.table)).all()
    for user, listed in zip(log.asked, found, strict=True):
        assert not set(listed) & set(log.items[log.offsets[user]:log.offsets[user + 1] - 1])
    assert made.outcome.rows_per_second > 0
