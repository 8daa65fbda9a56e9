"""The gateway as a process: uvicorn around serving/gateway/app.py until SIGTERM or Ctrl-C."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from contracts.errors import SluiceError
from serving.gateway.app import Upstream, gateway
from serving.gateway.shared_connections import SharedConnections, connections

GRACE_SECONDS = 5


@dataclass(frozen=True)
class Address:
    """Where the gateway listens; port 0 picks a free one."""

    host: str = "127.0.0.1"
    port: int = 8080


def run(upstream: Upstream, address: Address, on_ready: Callable[[int], None]) -> None:
    """Raises SluiceError where the port is taken."""
    with listening(address) as listener:
        server = uvicorn.Server(http_config(gateway(upstream), GRACE_SECONDS))
        on_ready(listener.getsockname()[1])
        server.run(sockets=[listener])


def http_config(app: ASGIApp, grace: int) -> uvicorn.Config:
    """Of connections that are bounded, in number and in how long they idle; `grace` in seconds. Of what is no HTTP
    there is no line: anybody could write as many as they like."""
    http: Any = partial(SharedConnections, places=connections())  # made for each connection
    return uvicorn.Config(app, http=http, log_config=None, log_level="error", access_log=False, ws="none",
                          timeout_graceful_shutdown=grace)


def listening(address: Address, option: str = "--port") -> socket.socket:
    """Raises SluiceError where it is taken, which names the option that picks another one."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise SluiceError(f"{address.host}:{address.port} cannot be listened on ({error.strerror}); stop what holds "
                          f"it, or give another {option}") from None
    return listener
