"""Starts a `sluice` command in the platform's environment: its output is the task's log, its exit code the task's end.

    0   done
    2   wrong use       fails at once: the same words will be wrong again
    3   refused         fails at once: a gate said no, and will say so again
    1, signals          fails, and is tried again
"""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from airflow.sdk import Variable, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_dags.settings import DEFAULTS

FINAL = {2: "wrong use", 3: "refused by a gate"}
log = logging.getLogger(__name__)


def setting(name: str) -> str:
    """The Variable's value, looked up while a task runs."""
    return str(Variable.get(name, default=DEFAULTS[name]))


def run(words: Sequence[str], spark: bool = False, accepted: Sequence[int] = (0,)) -> tuple[int, str]:
    """(exit code, last line) of `sluice WORDS`.

    Raises AirflowFailException for an exit code that no second try changes, AirflowException for any other that is not
    `accepted`. The command belongs to the task's process group and ends with it.
    """
    line = [*_started_by(setting("sluice_spark_master") if spark else ""), *words]
    environment = os.environ | {"MLFLOW_TRACKING_URI": setting("sluice_registry"), "COLUMNS": "120"}
    if spark and setting("sluice_spark_master"):
        environment["SLUICE_SPARK_MASTER"] = ""  # spark-submit decides
    log.info("$ %s", " ".join(line))
    last = ""
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        for text in process.stdout or ():
            last = text.rstrip() or last
            log.info("%s", text.rstrip()[:2000])
        code = process.wait()
    if code in accepted:
        return code, last
    if code in FINAL:
        raise AirflowFailException(f"{FINAL[code]} (exit code {code}): {last}")
    raise AirflowException(f"sluice {words[0]} ended with exit code {code}: {last}")


def _started_by(master: str) -> list[str]:
    """`sluice`, or its file handed to spark-submit, which lies beside it."""
    command = Path(setting("sluice"))
    if not master:
        return [str(command)]
    where = "import sluice.cli; print(sluice.cli.__file__)"
    file = subprocess.run([command.with_name("python"), "-c", where], capture_output=True, text=True, check=True)
    return [str(command.with_name("spark-submit")), "--master", master, file.stdout.strip()]


@task
def sluice(words: list[str], spark: bool = False) -> None:
    """A task that is one command."""
    run(words, spark)
