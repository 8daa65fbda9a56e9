"""The report of an hour with and without what is told to the server while it serves: figures, plots by ten minutes."""

from __future__ import annotations

from pathlib import Path

from contracts.summaries.demo import FreshHourSummary
from sluice.report import plots
from sluice.report.report import PAGE, rendered


def write_hour(folder: Path, hour: FreshHourSummary) -> Path:
    """Writes DIR/report.html."""
    pictures = {
        "Clicks, beside the oracle": plots.hour_shares(hour.runs, "clicks"),
        "Value, beside the oracle": plots.hour_shares(hour.runs, "value"),
        "Value lost to items that could not be had": plots.hour_losses(hour.runs),
    }
    path = folder / PAGE
    path.write_text(rendered("fresh_hour.html", hour=hour, plots=pictures), encoding="utf-8")
    return path
