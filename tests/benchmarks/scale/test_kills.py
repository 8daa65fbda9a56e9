from __future__ import annotations

import pytest

from benchmarks.scale import kills


@pytest.mark.slow
def test_killed_processes_cost_no_more_than_what_came_after_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kills, "SPAN", 0.5)
    found = kills.measure(rows=60_000, processes=2, epochs=4, checkpoint_seconds=0.2, kills=2, seed=0)
    assert found["kills"] == 2
    assert found["epochs"] == 4
    assert found["difference"] < kills.TOLERANCE
    assert found["needed"] <= found["batches"] < 2 * found["needed"], "it began anew, or took up what another run left"
