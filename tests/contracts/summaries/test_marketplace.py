from __future__ import annotations

import json

from contracts.summaries.marketplace import SimulatedLog


def test_the_simulated_logs_figures_come_back_from_json() -> None:
    made = SimulatedLog(
        seed=7, rows={"impressions": 11, "clicks": 2}, events=10, duplicate_rows=1, click_rate=0.2,
        shares={"noise": 1.0}, planted=(("city", "brand"), ("a", "b", "c")), incidental=(), seconds=0.5,
        events_per_minute=1200.0,
    )
    assert SimulatedLog.model_validate(json.loads(json.dumps(made.plain()))) == made
