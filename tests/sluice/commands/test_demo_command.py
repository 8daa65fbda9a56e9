from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from contracts.errors import SluiceError
from sluice.cli import app
from sluice.fresh_demo.hour import QUICK_HOUR, HourSettings


def test_servers_of_the_hour_end_with_it(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", "--fresh", "--keep-serving", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "leave --keep-serving out" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_hour_is_of_the_demo_that_is_there_and_of_no_other_preset(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", "--fresh", "--preset", "tastes", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "leave --preset out" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_quick_hour_is_a_quarter_of_the_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[HourSettings | None] = []

    def run(folder: Path, events: int | None, console: Console, settings: HourSettings | None) -> None:
        asked.append(settings)
        raise SluiceError("far enough")

    monkeypatch.setattr("sluice.fresh_demo.fresh_demo.run_fresh", run)
    for how in ([], ["--quick"]):
        CliRunner().invoke(app, ["demo", "--fresh", "--out", str(tmp_path), *how])
    assert asked == [None, QUICK_HOUR]
    assert 4 * QUICK_HOUR.visits == HourSettings().visits
