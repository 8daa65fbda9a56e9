from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from contracts.errors import ConfigError
from sluice.run.one_process import is_first, refuse_several, start_several

ROOT = Path(__file__).parents[3]


def test_alone_every_job_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    refuse_several("features")
    assert is_first()


def test_of_several_processes_those_that_do_not_train_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ConfigError, match="`sluice crosses` runs in one process and torchrun started 2"):
        refuse_several("crosses")
    assert not is_first()


def started(arguments: list[str], *paths: Path) -> subprocess.CompletedProcess[str]:
    """In two processes of `sluice`; modules of `paths` come first."""
    command = f"from sluice.run.one_process import start_several; start_several(2, {arguments!r}); print('came back')"
    environment = {name: value for name, value in os.environ.items() if name not in ("WORLD_SIZE", "RANK")}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, [*paths, ROOT]))
    return subprocess.run([sys.executable, "-c", command], env=environment, text=True, capture_output=True, timeout=170,
                          check=False)


def test_a_command_goes_on_in_as_many_processes_as_wanted() -> None:
    found = started(["--version"])
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) == 2
    assert set(found.stdout.splitlines()) == {f"sluice {version('sluice')}"}


def test_an_error_of_the_users_ends_all_at_once_in_one_sentence_with_its_exit_code(tmp_path: Path) -> None:
    found = started(["train", str(tmp_path / "nowhere.toml")])
    assert found.returncode == ConfigError.exit_code, found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert str(tmp_path / "nowhere.toml") in found.stderr


def test_a_process_that_is_killed_is_survived(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal\n"
        "if os.environ.get('RANK') == '1' and os.environ['SLUICE_RESTART_COUNT'] == '0':\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n", encoding="utf-8")
    found = started(["--version"], tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stderr.splitlines() == ["sluice: process 1 of 2 died"]


def test_one_process_and_those_that_torchrun_started_go_on_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    start_several(1, ["--version"])
    monkeypatch.setenv("WORLD_SIZE", "2")
    start_several(2, ["--version"])
