from __future__ import annotations

import contextlib
import fcntl
import io
import itertools
import logging
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from rich.console import Console
from rich.progress import Progress, TimeRemainingColumn

from contracts.progress import counted, report
from sluice.run.progress import EVERY, SILENCE, JobProgress, Rate, per_second, show_progress


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


def test_work_that_nobody_can_count_says_how_long_it_has_gone_on() -> None:
    sink, now = io.StringIO(), [0.0]
    progress = JobProgress(Console(file=sink, width=120), "features", None, clock=lambda: now[0])
    progress.remind()
    progress.note("check")
    for seconds in (SILENCE / 2, SILENCE, 1.5 * SILENCE, 2 * SILENCE):
        now[0] = seconds
        progress.remind()
    progress.note("fit")
    assert sink.getvalue().splitlines() == [
        "  features: check", "  features: check, 30 s so far", "  features: check, 60 s so far", "  features: fit"]


def test_what_work_inside_reports_is_shown_and_its_bar_moves_on_a_terminal() -> None:
    """In lines where there is no terminal, each piece once."""
    lines: list[str] = []
    for terminal in (False, True):
        sink = io.StringIO()
        with show_progress(Console(file=sink, force_terminal=terminal, width=80), "features"):
            report("ingest")
            for _ in counted("days", range(2)):
                pass
        lines = lines or sink.getvalue().splitlines()
        report("heard by nobody")
    assert lines[:3] == ["features ...", "  features: ingest", "  features: days"]
    assert len(lines) == 4
    assert "heard by nobody" not in sink.getvalue()
    assert "features: days" in sink.getvalue()


@pytest.mark.parametrize(("speed", "said"), [(12_345.6, "12,346/s"), (10.2, "10/s"), (2.34, "2.3/s"), (0.04, "0.04/s")])
def test_a_rate_below_ten_has_two_digits(speed: float, said: str) -> None:
    assert per_second(speed) == said


COUNTING = """
import time
from rich.console import Console
from contracts.progress import counted
from sluice.run.progress import show_progress
with show_progress(Console(stderr=True), "simulate"):
    for _ in counted("events", range(4)):
        time.sleep(0.2)
"""


def test_a_process_shows_a_bar_with_rate_and_remaining_time_on_a_terminal_alone() -> None:
    command = [sys.executable, "-c", COUNTING]
    plain = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert plain.splitlines()[:2] == ["simulate ...", "  simulate: events"]
    assert "\x1b" not in plain
    shown = on_terminal(command)
    assert "simulate: events" in shown
    assert re.search(r"━.*\d/s.*0:00:0\d.*0:00:0\d", shown)
    assert re.search(r"simulate: 0\.[89] s|simulate: [1-9]", shown)


def on_terminal(command: list[str]) -> str:
    """What the command writes to a terminal of 100 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = bytearray()
    with contextlib.suppress(OSError):  # as Linux says that the other side has gone
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    assert process.wait() == 0
    return shown.decode()


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
