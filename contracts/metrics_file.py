"""A job's figures as Prometheus reads them from a file (node_exporter's textfile collector), beside its summary.json.

    sluice_job_figure{job="features",figure="ingest.quarantined"} 12
    sluice_job_finished_timestamp_seconds{job="features"} 1795374781

`job` is the folder's name; a figure's name is its path in the summary. Lists (epochs, rounds, days) are histories and
are left out, as is text; true and false are 1 and 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from contracts.atomic_write import aside

FILE = "metrics.prom"
HEAD = """# HELP sluice_job_figure A figure of the job's summary, by its path.
# TYPE sluice_job_figure gauge
"""
TAIL = """# HELP sluice_job_finished_timestamp_seconds When the job's summary was written.
# TYPE sluice_job_finished_timestamp_seconds gauge
"""


def write(folder: Path, summary: Mapping[str, object]) -> None:
    """Replaces the folder's file in one rename."""
    job = escaped(folder.resolve().name)
    lines = [f'sluice_job_figure{{job="{job}",figure="{escaped(name)}"}} {value!r}\n'
             for name, value in figures(summary)]
    end = f'sluice_job_finished_timestamp_seconds{{job="{job}"}} {time.time():.0f}\n'
    with aside(folder / FILE) as draft:
        draft.write_text(HEAD + "".join(lines) + TAIL + end, encoding="utf-8")


def figures(summary: Mapping[str, object], before: str = "") -> Iterator[tuple[str, float]]:
    """Paths and finite numbers."""
    for name, value in summary.items():
        if isinstance(value, Mapping):
            yield from figures(value, f"{before}{name}.")
        elif isinstance(value, bool | int | float) and math.isfinite(value):
            yield f"{before}{name}", float(value)


def escaped(text: str) -> str:
    """As a label's value."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
