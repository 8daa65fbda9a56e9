"""Commands as tasks: what becomes of an exit code, and what a command is started by."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_dags import sluice_command
from airflow_dags.sluice_command import run


@pytest.fixture
def shell_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A platform whose `sluice` does what a shell is told, and whose spark-submit and python say how they were called.
    """
    programs = {
        "sluice": 'echo "registry $MLFLOW_TRACKING_URI"; eval "$@"',
        "spark-submit": 'echo "master ${SLUICE_SPARK_MASTER-unset}: $*"', "python": "echo /platform/sluice/cli.py",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    for name, value in {"sluice": str(tmp_path / "sluice"), "sluice_registry": "sqlite:///r.db",
                        "sluice_spark_master": ""}.items():
        monkeypatch.setenv(f"AIRFLOW_VAR_{name.upper()}", value)
    return tmp_path


def test_the_last_line_comes_back_and_the_registry_is_known(shell_platform: Path) -> None:
    assert run(["echo"]) == (0, "registry sqlite:///r.db")
    assert run(["echo one; echo two"]) == (0, "two")


@pytest.mark.parametrize("code", [2, 3])
def test_what_no_second_try_changes_fails_at_once(shell_platform: Path, code: int) -> None:
    with pytest.raises(AirflowFailException, match=f"exit code {code}.*so it is"):
        run([f"echo so it is; exit {code}"])


@pytest.mark.parametrize("code", [1, 4, 137])
def test_what_may_pass_is_tried_again(shell_platform: Path, code: int) -> None:
    with pytest.raises(AirflowException) as caught:
        run([f"exit {code}"])
    assert not isinstance(caught.value, AirflowFailException)


def test_an_accepted_code_is_no_failure(shell_platform: Path) -> None:
    assert run(["exit 4"], accepted=(0, 4))[0] == 4


def test_one_setting_submits_spark_steps_to_a_master(shell_platform: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_SLUICE_SPARK_MASTER", "yarn")
    assert run(["features", "--out", "x"], spark=True)[1] == (
        "master : --master yarn /platform/sluice/cli.py features --out x")
    assert run(["echo train"])[1] == "train"
    assert sluice_command.setting("sluice_spark_master") == "yarn"
