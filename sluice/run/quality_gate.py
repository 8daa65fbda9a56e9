"""`sluice quality`: the data quality gate, with the picture of what it refuses."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.errors import GateRefused
from contracts.summaries.quality import QualitySummary
from sluice.run.progress import show_progress
from sluice.run.quality_plot import draw

PICTURE = "refused.png"


def check_quality(config: Config, out: Artifacts, console: Console, day: str | None = None) -> QualitySummary:
    """Raises GateRefused that names the columns, the limits and the picture."""
    from pipelines.jobs import quality_job

    with show_progress(console, "quality"):
        found = quality_job.evaluate_day(config, out, day)
    folder = quality_job.folder_of(out, found.day)
    if not found.refused:
        (folder / PICTURE).unlink(missing_ok=True)
        return found
    today = quality_job.read_profile(out, found.day)
    history = [quality_job.read_profile(out, one) for one in found.history]
    picture = draw(folder / PICTURE, today, history, found.figures, found.columns)
    raise GateRefused(_sentence(found, picture))


def _sentence(found: QualitySummary, picture: Path) -> str:
    said = "; ".join(found.refused)
    return (f"the data of {found.day} are refused: {said}. The picture is {picture}; repair the day and run "
            "`sluice features --day` again, or widen the limit in the configuration where the change is real")
