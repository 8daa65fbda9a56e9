"""A real gateway over a real channel: uvicorn in a thread of the test's process, asked over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from serving.gateway.app import Upstream, gateway
from tests.serving.gateway.running_http import port_of, serving


@dataclass(frozen=True)
class Heard:
    """`body` is the JSON object of the answer, or its text where it is none."""

    status: int
    body: Any
    headers: dict[str, str]


class RunningGateway:
    """`with RunningGateway(Upstream(target)) as http: http.post("/v1/rank", {...})`."""

    def __init__(self, upstream: Upstream) -> None:
        self._serving = serving(gateway(upstream))

    def __enter__(self) -> RunningGateway:
        self.port = port_of(self._serving.__enter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._serving.__exit__(kind, error, trace)

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
