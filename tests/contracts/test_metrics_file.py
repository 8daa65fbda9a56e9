"""A summary's numbers, read back by Prometheus' own parser."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from contracts import metrics_file
from contracts.metrics_file import FILE, write
from contracts.summaries import summary
from contracts.summaries.quality import Finding, QualitySummary
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


def test_sentences_are_counted_and_judged_figures_have_their_names(tmp_path: Path) -> None:
    """As `sluice quality` and `sluice watch` have them, of the day judged last."""
    for day, refused in (("day=2026-01-04", ("the drift of city",)), ("day=2026-01-05", ())):
        summary.write(tmp_path / "quality" / day, QualitySummary(
            day=day, history=("2026-01-03",), judged=2, refused=refused, columns=(), seconds=0.5,
            figures=(Finding(figure="rows", value=10.0), Finding(figure="psi.city", value=0.125))))
    found = read(tmp_path / "quality")
    assert found.pop(("sluice_job_finished_timestamp_seconds", "quality")) > 1.7e9
    assert {key[1:]: value for key, value in found.items()} == {
        ("figures.psi.city", "quality"): 0.125, ("figures.rows", "quality"): 10.0, ("history", "quality"): 1.0,
        ("judged", "quality"): 2.0, ("quality", "refused"): 0.0, ("columns", "quality"): 0.0,
        ("quality", "seconds"): 0.5}
    assert list(metrics_file.figures({"figures": [{"name": "error rate", "value": 0.25}, {"name": "p99"}]})) == [
        ("figures.error rate", 0.25)]


def test_a_second_run_replaces_the_file(tmp_path: Path) -> None:
    for value in (1.0, 2.0):
        write(tmp_path, {"seconds": value})
    assert read(tmp_path)[("sluice_job_figure", "seconds", tmp_path.name)] == 2.0
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_jobs_of_all_runs_leave_their_latest_figures_in_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "all"
    shared.mkdir()
    monkeypatch.setenv(metrics_file.SHARED_FOLDER, str(shared))
    for run, rows in (("2026-01-04", 3), ("2026-01-05", 4)):
        write(tmp_path / run / "features", {"rows": rows})
        write(tmp_path / run / "models", {"seconds": 1.0})
        assert read(tmp_path / run / "features")["sluice_job_figure", "features", "rows"] == rows
    assert {path.name for path in shared.iterdir()} == {"features.prom", "models.prom"}
    assert (shared / "features.prom").read_text() == (tmp_path / "2026-01-05" / "features" / FILE).read_text()


def test_a_job_whose_shared_figures_cannot_be_written_has_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv(metrics_file.SHARED_FOLDER, str(tmp_path / "a file"))
    write(tmp_path / "features", {"rows": 3})
    assert read(tmp_path / "features")["sluice_job_figure", "features", "rows"] == 3
    assert "a file keeps no figures of features" in caplog.text
