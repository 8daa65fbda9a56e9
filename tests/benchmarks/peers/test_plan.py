from __future__ import annotations

from pathlib import Path

from benchmarks.peers.plan import Outcome, Plan


def test_a_plan_and_its_outcome_are_read_as_they_were_written(plan: Plan, tmp_path: Path) -> None:
    assert Plan.read(plan.write(tmp_path / "of" / "plan.json")) == plan
    outcome = Outcome(rows_per_second=2.5, seconds_to_best=1.5, epochs=3, best_epoch=2, peak_mib=9.0)
    outcome.write(tmp_path)
    assert Outcome.read(tmp_path) == outcome
