"""`sluice tune` as its user gives it; what it finds is tested by tests/models/tuning."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sluice.cli import app

CONFIG = """name = "tiny"
log = { path = "log" }
label = { expression = "c" }
fields = [{ name = "item", kind = "categorical", side = "item" }]
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.toml"
    path.write_text(CONFIG)
    return path


def sluice(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_without_features_it_says_what_to_run_first(config: Path) -> None:
    done = sluice("tune", config)
    assert done.exit_code == 1
    assert "out/tiny/encoding is missing; run `sluice features`" in done.stderr


def test_a_budget_is_a_duration(config: Path) -> None:
    done = sluice("tune", config, "--budget", "soon")
    assert done.exit_code == 2
    assert "'soon' is no duration" in " ".join(done.stderr.replace("│", " ").split())


def test_without_optuna_it_says_what_to_install(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("out/tiny/encoding").mkdir(parents=True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = sluice("tune", config, "--budget", "90s")
    assert done.exit_code == 2
    assert "install sluice[tuning]" in done.stderr
