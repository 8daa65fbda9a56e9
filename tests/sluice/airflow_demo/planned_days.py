"""Six days of the demo as they should go."""

from __future__ import annotations

from contracts.summaries.airflow_demo import DemoDay


def planned_days() -> list[DemoDay]:
    refused, rolled_back = {4: "quality: nulls", 5: "promotion: GAUC"}, {6: "clicks"}
    return [
        DemoDay(day=day, log_until=f"2026-01-{day + 9:02d}", bundle=f"m-{day}", refused=refused.get(day, ""),
                rolled_back=rolled_back.get(day, ""), requests=9, failed_requests=0, failures=(),
                served_bundles=(f"m-{day}",), visits=20, logged_rows=900, share_of_oracle=0.8, seconds=60.0)
        for day in range(1, 7)
    ]
