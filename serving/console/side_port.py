"""A port beside the server's: /metrics for Prometheus, /healthz and /readyz for who starts and balances processes, and
a page for people at /.

It speaks plain HTTP and asks for no token, so it belongs on loopback or into a private network. It listens in a thread
of the supervisor, where there is one, and reads files, so that a scrape costs no worker anything.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from serving.console.look import page
from serving.console.lookup import Lookup
from serving.console.own_name import OwnName
from serving.console.records import Records
from serving.gateway.http_server import Address, http_config, listening
from serving.metrics.metrics_folder import forget_the_gone

GRACE_SECONDS, STOP_SECONDS = 1, 5.0
FOR_MACHINES = frozenset({"/metrics", "/healthz", "/readyz"})
ONLY_OURS = {"Content-Security-Policy": "default-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                                        "frame-ancestors 'none'"}


class Figures:
    """Of all processes of a folder, the ended ones' counts among them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()

    def text(self) -> bytes:
        """As Prometheus reads them."""
        with self._lock:
            return generate_latest(self._registry())

    @property
    def workers(self) -> int:
        """Processes that serve."""
        with self._lock:
            return int(self._registry().get_sample_value("sluice_workers") or 0)

    def _registry(self) -> CollectorRegistry:
        forget_the_gone(self._folder)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._folder))
        return registry


@dataclass(frozen=True)
class Console:
    """`lookup` asks the server for slates, `other` another one, to compare; `records` are of past days."""

    lookup: Lookup = field(default_factory=Lookup)
    other: Lookup = field(default_factory=lambda: Lookup(elsewhere=True))
    records: Records = field(default_factory=Records)


def side_app(folder: Path, console: Console | None = None, host: str = "127.0.0.1") -> Starlette:
    """An ASGI application of the figures in `folder`, which listens on `host`."""
    figures, console = Figures(folder), console or Console()

    def metrics(request: Request) -> Response:
        return Response(figures.text(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def healthy(request: Request) -> Response:
        return JSONResponse({"status": "SERVING"})

    async def ready(request: Request) -> Response:
        workers = figures.workers
        status = "SERVING" if workers else "NOT_SERVING"
        return JSONResponse({"status": status, "workers": workers}, 200 if workers else 503)

    async def known(request: Request) -> Response:
        return JSONResponse({"other": console.other.target})

    routes = [Route("/metrics", metrics), Route("/healthz", healthy), Route("/readyz", ready),
              Route("/", lambda _: HTMLResponse(page(), headers=ONLY_OURS)),
              Route("/v1/console", known), Route("/v1/records", console.records.show),
              Route("/v1/why-not", console.lookup.why_not, methods=["POST"]),
              Route("/v1/other/why-not", console.other.why_not, methods=["POST"])]
    return Starlette(routes=routes, middleware=[Middleware(OwnName, host, FOR_MACHINES)])


@contextmanager
def side_port(app: Starlette, address: Address) -> Iterator[int]:
    """The port, on which `app` is served by a thread. Raises SluiceError where it is taken."""
    with listening(address, "--metrics-port") as listener:
        server = uvicorn.Server(http_config(app, GRACE_SECONDS))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="side port", daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(STOP_SECONDS)
