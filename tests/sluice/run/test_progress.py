from __future__ import annotations

import io

from rich.console import Console

from sluice.run.progress import show_progress


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
