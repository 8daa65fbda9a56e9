"""The report of six days under Airflow: a table of what happened each day, and what visitors were shown in a plot."""

from __future__ import annotations

from pathlib import Path

from contracts.summaries.airflow_demo import AirflowDemoSummary
from sluice.report import plots
from sluice.report.report import PAGE, rendered


def write_days(folder: Path, demo: AirflowDemoSummary) -> Path:
    """Writes DIR/report.html."""
    path = folder / PAGE
    path.write_text(rendered("days.html", demo=demo, plot=plots.demo_days(demo.days)), encoding="utf-8")
    return path
