"""Days with drifting tastes are read back as they were."""

from __future__ import annotations

from pathlib import Path

from contracts.summaries import summary
from contracts.summaries.days import DaysSummary, PlatformDay

DAY = PlatformDay(day=8, share_of_oracle={"updates itself": 0.8, "trained once": 0.7}, champion="m-1", refused="",
                  standard_error={"updates itself": 0.01, "trained once": 0.02}, seconds=9.5)


def test_days_are_read_back(tmp_path: Path) -> None:
    later = DAY.model_copy(update={"day": 9})
    given = DaysSummary(name="days", marketplace_version="2", days=(DAY, later), seconds=20.0)
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, DaysSummary) == given
