"""The days of the Airflow demo are read back as they were."""

from __future__ import annotations

from pathlib import Path

from contracts.summaries import summary
from contracts.summaries.airflow_demo import AirflowDemoSummary, DemoDay

DAY = DemoDay(day=4, log_until="2026-01-14", bundle="m-3", refused="quality: nulls", rolled_back="", requests=9,
              failed_requests=1, failures=("UNAVAILABLE: gone",), served_bundles=("m-2", "m-3"), logged_rows=900,
              share_of_oracle=0.8)


def test_days_are_read_back(tmp_path: Path) -> None:
    given = AirflowDemoSummary(days=(DAY,), events=15_000, rate=10.0, seconds=99.5)
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, AirflowDemoSummary) == given
