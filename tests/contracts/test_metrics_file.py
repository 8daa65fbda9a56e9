"""A summary's numbers, read back by Prometheus' own parser."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from contracts.metrics_file import FILE, write
from contracts.summaries import summary
from contracts.summaries.summary import Record, Summary


class Rows(Record):
    """A part."""

    quarantined: int
    reasons: dict[str, int]
    days: tuple[int, ...]


class SomeSummary(Summary):
    """Of no job."""

    name: str
    rows: Rows
    ready: bool
    seconds: float


def read(folder: Path) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families((folder / FILE).read_text("utf-8"))
    return {(one.name, *sorted(one.labels.values())): one.value for family in families for one in family.samples}


def test_every_job_leaves_its_figures_and_when_it_ended(tmp_path: Path) -> None:
    folder = tmp_path / "features"
    rows = Rows(quarantined=3, reasons={'no "time"\n': 2}, days=(1, 2))
    summary.write(folder, SomeSummary(name="x", rows=rows, ready=True, seconds=1.5))
    found = read(folder)
    assert found.pop(("sluice_job_finished_timestamp_seconds", "features")) > 1.7e9
    assert found == {
        ("sluice_job_figure", "features", "rows.quarantined"): 3.0,
        ("sluice_job_figure", "features", 'rows.reasons.no "time"\n'): 2.0,
        ("sluice_job_figure", "features", "ready"): 1.0, ("sluice_job_figure", "features", "seconds"): 1.5,
    }


def test_a_second_run_replaces_the_file(tmp_path: Path) -> None:
    for value in (1.0, 2.0):
        write(tmp_path, {"seconds": value})
    assert read(tmp_path)[("sluice_job_figure", "seconds", tmp_path.name)] == 2.0
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
