from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from contracts.errors import ConfigError
from sluice.run.one_process import CHECKPOINT_SECONDS, PATIENCE, is_first, refuse_several, start_several

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


def started(arguments: list[str], *paths: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    """In two processes of `sluice`; modules of `paths` come first, and what these make is what a run reaches."""
    command = (f"from pathlib import Path; from sluice.run.one_process import start_several; {before}"
               f"start_several(2, {arguments!r}, [Path(name) for name in {[*map(str, paths)]!r}])")
    environment = {name: value for name, value in os.environ.items() if name not in ("WORLD_SIZE", "RANK")}
    environment["OMP_NUM_THREADS"] = "1"  # or torchrun says that it has set it
    environment["PYTHONPATH"] = os.pathsep.join(map(str, [*paths, ROOT]))
    return subprocess.run([sys.executable, "-c", command], env=environment, text=True, capture_output=True, timeout=170,
                          check=False)


@pytest.mark.slow
def test_a_command_goes_on_in_as_many_processes_as_wanted() -> None:
    found = started(["--version"])
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) == 2
    assert set(found.stdout.splitlines()) == {f"sluice {version('sluice')}"}


@pytest.mark.slow
def test_an_error_of_the_users_ends_all_at_once_in_one_sentence_with_its_exit_code(tmp_path: Path) -> None:
    found = started(["train", str(tmp_path / "nowhere.toml")])
    assert found.returncode == ConfigError.exit_code, found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert str(tmp_path / "nowhere.toml") in found.stderr


@pytest.mark.slow
def test_a_process_that_is_killed_is_survived(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal\n"
        "if os.environ.get('RANK') == '1' and os.environ['SLUICE_RESTART_COUNT'] == '0':\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n", encoding="utf-8")
    found = started(["--version"], tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stderr.splitlines() == ["sluice: process 1 of 2 died"]


def dies(folder: Path, starts: int, reached: str = "pass") -> None:
    """Process 1 is killed in each of the first so many starts, after it has done `reached`."""
    (folder / "sitecustomize.py").write_text(
        "import os, pathlib, signal\n"
        "start = os.environ.get('SLUICE_RESTART_COUNT', '0')\n"
        f"if os.environ.get('RANK') == '1' and int(start) < {starts}:\n"
        f"    folder = pathlib.Path({str(folder)!r}, 'dnn')\n"
        f"    {reached}\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n", encoding="utf-8")


@pytest.mark.slow
def test_a_run_that_keeps_reaching_checkpoints_is_started_anew_as_often_as_it_takes(tmp_path: Path) -> None:
    kept = "folder / 'checkpoints' / start"
    dies(tmp_path, 5, f"({kept}).mkdir(parents=True); ({kept} / 'progress.json').touch()")
    found = started(["--version"], tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stderr.splitlines() == ["sluice: process 1 of 2 died"] * 5


@pytest.mark.slow
def test_a_run_that_reaches_nothing_is_given_up_after_three_restarts(tmp_path: Path) -> None:
    (tmp_path / "dnn" / "checkpoints" / "000001").mkdir(parents=True)
    (tmp_path / "dnn" / "checkpoints" / "000001" / "progress.json").touch()
    dies(tmp_path, 9)
    found = started(["--version"], tmp_path)
    assert found.returncode == 1
    assert found.stderr.splitlines() == [
        *["sluice: process 1 of 2 died"] * 4,
        "sluice: 3 restarts in a row came to no new checkpoint; this was the last"]


@pytest.mark.slow
def test_processes_that_are_told_to_end_have_the_time_that_a_checkpoint_takes(tmp_path: Path) -> None:
    """Where nobody has said how long; torch alone would kill them after 30 seconds."""
    ask = ("import os, torch.distributed.run as r; r.run = lambda asked: print(LaunchConfig(1, 1, 1).shutdown_timeout);"
           "from torch.distributed.launcher.api import LaunchConfig; ")
    found = started(["--version"], tmp_path, before=ask)
    assert found.stdout.split() == [str(CHECKPOINT_SECONDS)], found.stderr
    found = started(["--version"], tmp_path, before=ask + f"os.environ[{PATIENCE!r}] = '7'; ")
    assert found.stdout.split() == ["7"], found.stderr


def test_one_process_and_those_that_torchrun_started_go_on_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    start_several(1, ["--version"])
    monkeypatch.setenv("WORLD_SIZE", "2")
    start_several(2, ["--version"])
