"""An Airflow of one's own: scheduler, DAG processor, triggerer, API server and web page, started and stopped as one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType

from contracts.errors import SluiceError
from serving.server.port_takeover import reserved
from sluice.airflow_demo.api import AirflowApi

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS, STOP_SECONDS = 600.0, 30.0
HOST, ATTEMPTS = "127.0.0.1", 20
DAGS = {"daily_ranking", "weekly_cross_search", "federated_rounds", "backfill_features", "retention"}
# One run at a time of DAGs that do not change, beside a server and trainings: few workers, each file read once, the
# scheduler awake soon after a task, and patience where the machine is busy.
SETTINGS = {
    "CORE__PARALLELISM": "4", "DAG_PROCESSOR__PARSING_PROCESSES": "1",
    "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "86400", "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
    "WORKERS__EXECUTION_API_TIMEOUT": "60",
}


def free_ports() -> int:
    """A port of the page whose two successors, the log servers', are free too. Raises SluiceError."""
    for _ in range(ATTEMPTS):
        with contextlib.suppress(SluiceError, OverflowError), reserved(HOST, 0) as port, \
                reserved(HOST, port + 1), reserved(HOST, port + 2):
            return port
    raise SluiceError(f"no three ports in a row are free on {HOST}")


class AirflowProcess:
    """`with AirflowProcess(home, log) as airflow: airflow.wait(); airflow.api...`; runs wait until they are triggered.

    `home` keeps its data base and logs. It comes up beside what is done before `wait`.
    """

    def __init__(self, home: Path, log: Path) -> None:
        port = free_ports()
        self.api = AirflowApi(f"http://{HOST}:{port}")
        environment = os.environ | {f"AIRFLOW__{key}": value for key, value in SETTINGS.items()} | {
            "AIRFLOW_HOME": str(home.resolve()), "AIRFLOW_PORT": str(port), "SLUICE_SCHEDULED": "no"}
        with log.open("w") as sink:
            self._process = subprocess.Popen(
                [str(ROOT / "setup" / "airflow.sh"), "standalone"], stdout=sink, stderr=subprocess.STDOUT,
                env=environment, start_new_session=True)
        self._log = log

    def __enter__(self) -> AirflowProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait(self) -> None:
        """Until it has read all DAGS. Raises SluiceError when it does not come up."""
        end = time.monotonic() + START_SECONDS
        while not (self.api.healthy() and self.api.dags() >= DAGS):
            if self._process.poll() is not None or time.monotonic() > end:
                raise SluiceError(f"Airflow did not come up; {self._log} says why")
            time.sleep(1)

    def stop(self) -> None:
        """All of its processes: they are a group of their own."""
        for number in (signal.SIGINT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
