"""HTTP/JSON in front of a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sluice.commands.command import command


@command()
def gateway(
    target: Annotated[str, typer.Option(help="HOST:PORT of `sluice serve`")] = "127.0.0.1:50051",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one")] = 8080,
    host: Annotated[str, typer.Option(help="the address to listen on")] = "127.0.0.1",
    root_certificates: Annotated[
        Path | None, typer.Option(help="PEM of the authority behind the server's certificate; plain text without")
    ] = None,
    max_body_kb: Annotated[int, typer.Option(min=1, help="larger bodies are refused with 413")] = 4096,
) -> None:
    """HTTP/JSON in front of a server: POST /v1/rank and /v1/score, /openapi.json, /healthz, /readyz.

    The calls, checks, deadlines (header Grpc-Timeout) and tokens (header Authorization) are the server's own.

    Example: sluice gateway --target 127.0.0.1:50051 --port 8080
    """
    import grpc

    from contracts.errors import ConfigError
    from serving.gateway.app import Upstream
    from serving.gateway.http_server import Address, run

    credentials = None
    if root_certificates is not None:
        if not root_certificates.is_file():
            raise ConfigError(f"--root-certificates {root_certificates} is no file")
        credentials = grpc.ssl_channel_credentials(root_certificates.read_bytes())
    upstream = Upstream(target, credentials, max_body_kb << 10)
    run(upstream, Address(host, port), lambda bound: typer.echo(f"gateway to {target} on http://{host}:{bound}"))
