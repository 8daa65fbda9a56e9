from __future__ import annotations

import os
import subprocess
import sys
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


def test_a_command_goes_on_in_as_many_processes_as_wanted() -> None:
    command = "from sluice.run.one_process import start_several; start_several(2, ['--version']); print('came back')"
    environment = {name: value for name, value in os.environ.items() if name not in ("WORLD_SIZE", "RANK")}
    found, one = (subprocess.run([sys.executable, *arguments], env={**environment, "PYTHONPATH": str(ROOT)}, text=True,
                                 capture_output=True, timeout=170, check=False)
                  for arguments in (["-c", command], ["-m", "sluice.cli", "--version"]))
    assert found.returncode == 0, found.stderr
    assert sorted(found.stdout.splitlines()) == sorted(2 * one.stdout.splitlines())


def test_one_process_and_those_that_torchrun_started_go_on_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    start_several(1, ["--version"])
    monkeypatch.setenv("WORLD_SIZE", "2")
    start_several(2, ["--version"])
