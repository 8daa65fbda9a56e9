from __future__ import annotations

import io
import itertools
import logging

import pytest
from rich.console import Console
from rich.progress import Progress, TimeRemainingColumn

from sluice.run.progress import EVERY, JobProgress, Rate, show_progress


def output(terminal: bool) -> str:
    sink = io.StringIO()
    with show_progress(Console(file=sink, force_terminal=terminal, width=80), "train") as progress:
        progress.note("dnn")
        progress.advance("dnn", 1, 2)
        progress.advance("dnn", 2, 2)
    return sink.getvalue()


def test_plain_lines_elsewhere_each_said_once():
    lines = output(terminal=False).splitlines()
    assert lines[:2] == ["train ...", "  train: dnn"]
    assert len(lines) == 3
    assert lines[2].startswith("train: ")
    assert lines[2].endswith(" s")


def test_a_terminal_gets_a_bar():
    assert "\x1b[" in output(terminal=True)


def test_long_work_says_again_how_far_it_is_and_what_remains() -> None:
    sink, now = io.StringIO(), iter([0.0, EVERY / 2, EVERY, EVERY, EVERY + 1, 2 * EVERY, 2 * EVERY])
    progress = JobProgress(Console(file=sink, width=120), "train", None, clock=lambda: next(now))
    for done in (0, 100, 250, 275, 500):
        progress.advance("dnn", done, 1000)
    assert sink.getvalue().splitlines() == [
        "  train: dnn", "  train: dnn 25%, 25/s, about 30 s left", "  train: dnn 50%, 25/s, about 20 s left"]


def test_a_bar_has_a_rate_and_the_remaining_time() -> None:
    sink = io.StringIO()
    console = Console(file=sink, force_terminal=True, width=120)
    clock = itertools.count().__next__
    with Progress(Rate(), TimeRemainingColumn(), console=console, get_time=clock, auto_refresh=False) as bar:
        progress = JobProgress(console, "train", bar)
        for done in range(0, 400, 100):
            progress.advance("dnn", done, 400)
        bar.refresh()
    assert "/s" in sink.getvalue()
    assert "0:00:" in sink.getvalue()


def test_jobs_write_lines_of_json_where_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SLUICE_LOG_FORMAT", "json")
    caplog.set_level(logging.INFO, "sluice")
    assert output(terminal=True) == ""
    with pytest.raises(ValueError, match="no rows"), show_progress(Console(file=io.StringIO()), "features"):
        raise ValueError("no rows")
    assert [record.getMessage() for record in caplog.records] == [
        "train begins", "train: dnn", "train is done", "features begins", "features failed: no rows"]
    about = [record.fields for record in caplog.records]  # type: ignore[attr-defined]
    assert [one["job"] for one in about] == ["train"] * 3 + ["features"] * 2
    assert about[2]["seconds"] >= 0
