"""What the demo says to a running Airflow: its REST API (version 2), by the standard library alone."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from contracts.errors import SluiceError

ENDED = {"success", "failed"}
POLL_SECONDS = 1.0
ANSWER_SECONDS = 120.0


class Runs(Protocol):
    """Of DAGs, as a day of the demo starts and follows them; `address` is where a person looks at them."""

    address: str

    def trigger(self, dag: str, day: str, conf: Mapping[str, int | str]) -> str: ...

    def clear(self, dag: str, run: str, task: str) -> None: ...

    def wait(self, dag: str, run: str, seconds: float) -> dict[str, str]: ...

    def ended(self, dag: str, run: str) -> bool: ...


class AirflowApi:
    """Of an Airflow on loopback where everybody is an administrator."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._token = ""

    def healthy(self) -> bool:
        """Whether scheduler and DAG processor beat, and the API answers."""
        try:
            health = self.call("GET", "monitor/health")
        except (OSError, SluiceError):
            return False
        return all((health[part] or {}).get("status") == "healthy" for part in ("scheduler", "dag_processor"))

    def dags(self) -> set[str]:
        """Ids of all that the DAG processor has read."""
        return {entry["dag_id"] for entry in self.call("GET", "dags?limit=100")["dags"]}

    def set_variables(self, variables: Mapping[str, str]) -> None:
        """Changes those that are there, makes the others."""
        for key, value in variables.items():
            body = {"key": key, "value": value}
            try:
                self.call("PATCH", f"variables/{key}", body)
            except SluiceError:
                self.call("POST", "variables", body)

    def unpause(self, dag: str) -> None:
        """Lets the DAG's runs begin."""
        self.call("PATCH", f"dags/{dag}?update_mask=is_paused", {"is_paused": False})

    def trigger(self, dag: str, day: str, conf: Mapping[str, int | str]) -> str:
        """Starts a run over the data of `day` and returns its id."""
        start = datetime.fromisoformat(day).replace(tzinfo=UTC)
        body = {
            "dag_run_id": f"day_{day}", "logical_date": start.isoformat(), "data_interval_start": start.isoformat(),
            "data_interval_end": (start + timedelta(days=1)).isoformat(), "conf": dict(conf),
        }
        return str(self.call("POST", f"dags/{dag}/dagRuns", body)["dag_run_id"])

    def clear(self, dag: str, run: str, task: str) -> None:
        """The task and what follows it will run again."""
        self.call("POST", f"dags/{dag}/clearTaskInstances", {
            "dry_run": False, "dag_run_id": run, "task_ids": [task], "include_downstream": True, "only_failed": False,
            "reset_dag_runs": True,
        })

    def wait(self, dag: str, run: str, seconds: float) -> dict[str, str]:
        """The states of the run's tasks when it has ended. Raises SluiceError when it has not in time."""
        end = time.monotonic() + seconds
        while not self.ended(dag, run):
            if time.monotonic() > end:
                raise SluiceError(f"{dag} {run!r} has not ended after {seconds:g} s; look at {self.address}")
            time.sleep(POLL_SECONDS)
        return self.states(dag, run)

    def ended(self, dag: str, run: str) -> bool:
        """Whether the run is over, well or not."""
        return self.call("GET", f"dags/{dag}/dagRuns/{urllib.parse.quote(run)}")["state"] in ENDED

    def states(self, dag: str, run: str) -> dict[str, str]:
        """By task; "None" for one that has not been looked at yet."""
        answer = self.call("GET", f"dags/{dag}/dagRuns/{urllib.parse.quote(run)}/taskInstances?limit=200")
        return {entry["task_id"]: str(entry["state"]) for entry in answer["task_instances"]}

    def call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """The JSON of a good answer. Raises SluiceError on any other, OSError where nobody answers."""
        if not self._token:
            self._token = self._ask("GET", "/auth/token", None)["access_token"]
        return self._ask(method, f"/api/v2/{path}", body)

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self._token}"} if self._token else {})
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise SluiceError(f"Airflow answered {error.code} to {method} {path}: {error.read()[:500]!r}") from None
