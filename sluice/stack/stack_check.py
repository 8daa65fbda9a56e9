"""Is a running stack seen from outside? One answer over HTTP, a metric that moves, a trace with its stages, and every
query of the dashboard answered by Prometheus."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contracts.errors import SluiceError
from sluice.stack.trace_receiver import TraceReceiver

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "sluice.json"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
WAIT_SECONDS = 60.0
COUNTED = 'sluice_requests_total{method="Rank",status="OK"}'


def check(gateway: int, side: int, prometheus: int | None, traces: TraceReceiver) -> Iterator[str]:
    """Ports of loopback. Yields what was seen. Raises SluiceError for what was not."""
    items = ask(gateway)
    yield f"POST /v1/rank: {items} items"
    _until(lambda: counted(side) >= 1, f"{COUNTED} of /metrics")
    yield f"/metrics: {COUNTED} {counted(side):.0f}"
    _until(lambda: "rank" in traces.spans(TRACE), "a trace with the span of a stage")
    yield f"trace {TRACE}: {', '.join(sorted(traces.spans(TRACE)))}"
    if prometheus is None:
        yield "Prometheus is not installed: no query was asked"
        return
    _until(lambda: bool(query(prometheus, COUNTED)), f"{COUNTED} in Prometheus")
    queries = [target["expr"] for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]
               for target in panel["targets"]]
    answered = [bool(query(prometheus, one)) for one in queries]
    yield f"Prometheus: all {len(queries)} queries of the dashboard are answered, {sum(answered)} with data"


def ask(gateway: int) -> int:
    """Items of one answer, asked for within a trace."""
    body = json.dumps({"user_id": "somebody", "limit": 3}).encode()
    headers = {"Grpc-Timeout": "5S", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    answer = _read(urllib.request.Request(f"http://127.0.0.1:{gateway}/v1/rank", body, headers))
    return len(json.loads(answer)["items"])


def counted(side: int) -> float:
    lines = _read(urllib.request.Request(f"http://127.0.0.1:{side}/metrics")).splitlines()
    return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(COUNTED)), 0.0)


def query(prometheus: int, expression: str) -> list[Any]:
    """The result. Raises SluiceError where Prometheus refuses it."""
    asked = urllib.parse.urlencode({"query": expression})
    answer = json.loads(_read(urllib.request.Request(f"http://127.0.0.1:{prometheus}/api/v1/query?{asked}")))
    if answer["status"] != "success":
        raise SluiceError(f"Prometheus does not answer {expression!r}: {answer}")
    found: list[Any] = answer["data"]["result"]
    return found


def _read(request: urllib.request.Request) -> str:
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read().decode())
    except OSError as error:
        raise SluiceError(f"{request.full_url} does not answer: {error}") from None


def _until(seen: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not seen():
        if time.monotonic() > end:
            raise SluiceError(f"{what} was not seen within {WAIT_SECONDS:.0f} s")
        time.sleep(0.2)
