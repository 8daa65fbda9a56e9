"""A job's figures as Prometheus reads them from a file (node_exporter's textfile collector), beside its summary.json.

    sluice_job_figure{job="features",figure="ingest.quarantined"} 12
    sluice_job_finished_timestamp_seconds{job="features"} 1795374781

`job` is the folder's name; a figure's name is its path in the summary. Lists of sentences (why a day was refused) are
counted, those of judged figures (PSI of a column) have each by its name, and others (epochs, rounds, days) are
histories and are left out, as is text; true and false are 1 and 0. A folder of one day leaves its figures to the job
that it is part of, so that every day replaces those of the one before. Where SLUICE_METRICS_FOLDER names a folder,
each job's figures lie there too, as JOB.prom: one file a job, that of its latest run, since node_exporter refuses the
same series from two. A job does not fail because that folder cannot be written.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from contracts.atomic_write import aside

FILE, SHARED_FOLDER = "metrics.prom", "SLUICE_METRICS_FOLDER"
HEAD = """# HELP sluice_job_figure A figure of the job's summary, by its path.
# TYPE sluice_job_figure gauge
"""
TAIL = """# HELP sluice_job_finished_timestamp_seconds When the job's summary was written.
# TYPE sluice_job_finished_timestamp_seconds gauge
"""


def write(folder: Path, summary: Mapping[str, object]) -> None:
    """Replaces the folder's file in one rename, or that of the folder above one of a day; and the job's where all jobs
    leave theirs."""
    where = folder.resolve()
    where = where.parent if where.name.startswith("day=") else where
    job = escaped(where.name)
    lines = [f'sluice_job_figure{{job="{job}",figure="{escaped(name)}"}} {value!r}\n'
             for name, value in figures(summary)]
    end = f'sluice_job_finished_timestamp_seconds{{job="{job}"}} {time.time():.0f}\n'
    text = HEAD + "".join(lines) + TAIL + end
    _put(where / FILE, text)
    if shared := os.environ.get(SHARED_FOLDER):
        try:
            _put(Path(shared) / f"{where.name}.prom", text)
        except OSError as error:
            logging.getLogger("sluice.jobs").warning(
                "%s keeps no figures of %s (%s); they are in %s: give a folder that this user may write",
                shared, where.name, error.strerror, where / FILE)


def _put(path: Path, text: str) -> None:
    with aside(path) as draft:
        draft.write_text(text, encoding="utf-8")


def figures(summary: Mapping[str, object], before: str = "") -> Iterator[tuple[str, float]]:
    """Paths and finite numbers."""
    for name, value in summary.items():
        if isinstance(value, Mapping):
            yield from figures(value, f"{before}{name}.")
        elif isinstance(value, list):
            yield from _listed(f"{before}{name}", value)
        elif isinstance(value, bool | int | float) and math.isfinite(value):
            yield f"{before}{name}", float(value)


def _listed(name: str, values: Sequence[object]) -> Iterator[tuple[str, float]]:
    if all(isinstance(value, str) for value in values):
        yield name, float(len(values))
    for value in values:
        if isinstance(value, Mapping) and "value" in value:
            yield from figures({str(value.get("figure", value.get("name"))): value["value"]}, f"{name}.")


def escaped(text: str) -> str:
    """As a label's value."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
