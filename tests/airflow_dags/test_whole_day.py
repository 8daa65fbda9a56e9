"""One day through `airflow dags test`: every task of daily_ranking for real, up to a server that serves its bundle."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.airflow_dags.dag_rules import FOLDER

ROOT = FOLDER.parent
PYTHON = ROOT / ".venv" / "bin" / "python"
EVENTS, SECONDS = 1_500, 3_000
WRITE_LOG = """
import sys, tomllib
from pathlib import Path
from rich.console import Console
from sluice.airflow_demo import daily_config
from sluice.airflow_demo.demo_world import HISTORY, DemoWorld
world = DemoWorld(Path(sys.argv[1]), int(sys.argv[2]), Console(stderr=True))
for number in range(HISTORY):
    world.days.deliver(number)
path = Path(sys.argv[1]) / "daily.toml"
few_clicks = {"gate": {"max_miscalibration": 9.0}}  # the calibration of so small a day is what it may be
config = daily_config.merged(tomllib.loads(path.read_text()), few_clicks)
path.write_text("".join(f"{key} = {daily_config.toml(value)}\\n" for key, value in config.items()))
print(world.days.date(HISTORY - 1))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served_once_promoted(folder: Path, day: str, port: int, environment: dict[str, str]) -> Iterator[None]:
    """`sluice serve` of the alias, started as soon as there is a champion."""
    stop, started = threading.Event(), []
    command = [str(PYTHON), "-m", "sluice.cli", "serve", "models:/marketplace@champion", "--port", str(port),
               "--log-answers", str(folder / "answers"), "--connection-seconds", "1"]

    def wait() -> None:
        while not (folder / "runs" / day / "gate" / "summary.json").exists():
            if stop.wait(0.5):
                return
        time.sleep(2)  # the alias follows the verdict
        with (folder / "server.log").open("w") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT, env=environment))

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for process in started:
            process.terminate()
            process.wait(60)


def test_a_day_becomes_the_champion_that_is_served(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    day = subprocess.run([PYTHON, "-c", WRITE_LOG, tmp_path, str(EVENTS)], cwd=ROOT, env=environment, text=True,
                         capture_output=True, check=True).stdout.split()[-1]
    port, registry = free_port(), f"sqlite:///{tmp_path}/registry.db"
    variables = {"config": tmp_path / "daily.toml", "data": tmp_path / "raw", "runs": tmp_path / "runs",
                 "registry": registry, "serving": f"127.0.0.1:{port}", "answers": tmp_path / "answers",
                 "clicks": tmp_path / "clicks"}
    airflow = environment | {f"AIRFLOW_VAR_SLUICE_{name.upper()}": str(value) for name, value in variables.items()}
    airflow |= {"AIRFLOW_HOME": str(tmp_path / "airflow"), "SLUICE_SCHEDULED": "no"}
    command = str(ROOT / "setup" / "airflow.sh")
    for words in (["db", "migrate"], ["dags", "reserialize"]):
        subprocess.run([command, *words], env=airflow, check=True, capture_output=True)
    with served_once_promoted(tmp_path, day, port, environment | {"MLFLOW_TRACKING_URI": registry}):
        done = subprocess.run(
            [command, "dags", "test", "daily_ranking", day, "--conf", json.dumps({"watch_seconds": 0})],
            env=airflow, text=True, capture_output=True, check=False, timeout=SECONDS)
    tail = (done.stdout + done.stderr)[-6000:]
    assert done.returncode == 0, tail
    out = tmp_path / "runs" / day
    assert json.loads((out / "features" / "summary.json").read_text())["until"] == day
    served = json.loads((out / "registration" / "summary.json").read_text())["tags"]["bundle_version"]
    assert json.loads((out / "watch" / "summary.json").read_text())["bundle"] == served
    assert served in (tmp_path / "server.log").read_text()
    assert not json.loads((out / "quality" / f"day={day}" / "summary.json").read_text())["refused"]
