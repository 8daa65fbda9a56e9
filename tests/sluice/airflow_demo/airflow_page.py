"""An HTTP server on loopback that speaks as much of Airflow's REST API as the demo asks for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HEALTHY = {"scheduler": {"status": "healthy"}, "dag_processor": {"status": "healthy"}}


class AirflowPage(ThreadingHTTPServer):
    """`task_states`: of one run after the other, the last one stays; `requests`: (method, path, body) as they came."""

    daemon_threads = True

    def __init__(self, *task_states: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.task_states = list(task_states)
        self.health: dict[str, Any] = HEALTHY
        self.variables: dict[str, str] = {}
        self.run_states = ["queued", "running", "success"]
        self.requests: list[tuple[str, str, Any]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def reply(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """(status, JSON)."""
        if path == "/auth/token":
            return 200, {"access_token": "a-token"}
        self.requests.append((method, path.removeprefix("/api/v2/"), body))
        place = path.removeprefix("/api/v2/").partition("?")[0].split("/")
        match (method, place):
            case ("GET", ["monitor", "health"]):
                return 200, self.health
            case ("GET", ["dags"]):
                return 200, {"dags": [{"dag_id": "daily_ranking"}, {"dag_id": "retention"}]}
            case ("PATCH", ["variables", key]) if key not in self.variables:
                return 404, {"detail": "no such variable"}
            case ("PATCH" | "POST", ["variables", *_]):
                self.variables[body["key"]] = body["value"]
                return 200, body
            case ("PATCH", ["dags", _]):
                return 200, body
            case ("POST", ["dags", _, "dagRuns"]):
                return 200, {"dag_run_id": body["dag_run_id"]}
            case ("POST", ["dags", _, "clearTaskInstances"]):
                return 200, {}
            case ("GET", ["dags", _, "dagRuns", _]):
                return 200, {"state": self.run_states.pop(0) if len(self.run_states) > 1 else self.run_states[0]}
            case ("GET", ["dags", _, "dagRuns", _, "taskInstances"]):
                states = self.task_states.pop(0) if len(self.task_states) > 1 else self.task_states[0]
                return 200, {"task_instances": [{"task_id": task, "state": state} for task, state in states.items()]}
        return 404, {"detail": f"{method} {path}"}


class _Handler(BaseHTTPRequestHandler):
    server: AirflowPage

    def _do(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        known = self.path == "/auth/token" or self.headers.get("Authorization") == "Bearer a-token"
        status, answer = self.server.reply(self.command, self.path, body) if known else (401, {})
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PATCH = _do

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def airflow_page(*task_states: dict[str, str]) -> Iterator[AirflowPage]:
    with AirflowPage(*task_states) as page:
        thread = threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield page
        finally:
            page.shutdown()
            thread.join()
