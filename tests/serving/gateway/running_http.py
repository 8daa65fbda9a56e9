"""A real HTTP server on a free port, in a thread of the test's process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from serving.gateway.timed_headers import Http


@contextmanager
def serving(app: ASGIApp, http: Http = "auto") -> Iterator[uvicorn.Server]:
    """Once it listens (`port_of`); it has stopped afterwards."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, http=http, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join(20)


def port_of(server: uvicorn.Server) -> int:
    found: int = server.servers[0].sockets[0].getsockname()[1]
    return found
