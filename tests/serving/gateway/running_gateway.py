"""A real gateway over a real channel: uvicorn in a thread of the test's process, asked over HTTP."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import uvicorn

from serving.gateway.app import Upstream, gateway


@dataclass(frozen=True)
class Heard:
    """`body` is the JSON object of the answer, or its text where it is none."""

    status: int
    body: Any
    headers: dict[str, str]


class RunningGateway:
    """`with RunningGateway(Upstream(target)) as http: http.post("/v1/rank", {...})`."""

    def __init__(self, upstream: Upstream) -> None:
        self._server = uvicorn.Server(uvicorn.Config(gateway(upstream), port=0, log_level="warning", ws="none"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> RunningGateway:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(20)

    def post(self, path: str, body: object, **headers: str) -> Heard:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._heard(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", sent, headers))

    def get(self, path: str) -> Heard:
        return self._heard(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}"))

    def _heard(self, request: urllib.request.Request) -> Heard:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, text, headers = answer.status, answer.read().decode(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            status, text, headers = error.code, error.read().decode(), dict(error.headers)
        return Heard(status, json.loads(text) if "json" in headers.get("content-type", "") else text, headers)
