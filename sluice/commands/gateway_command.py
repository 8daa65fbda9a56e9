"""HTTP/JSON in front of a server."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice.commands.command import CallerCertificate, CallerKey, ServerAuthority, Tls, command


@command()
def gateway(
    target: Annotated[str, typer.Option(help="HOST:PORT of `sluice serve`")] = "127.0.0.1:50051",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one")] = 8080,
    host: Annotated[str, typer.Option(help="the address to listen on")] = "127.0.0.1",
    tls: Tls = False,
    tls_ca: ServerAuthority = None,
    tls_certificate: CallerCertificate = None,
    tls_key: CallerKey = None,
    max_body_kb: Annotated[int, typer.Option(min=1, help="larger bodies are refused with 413")] = 1024,
) -> None:
    """HTTP/JSON in front of a server: POST /v1/rank, /v1/score, /v1/why-not, /v1/events and /v1/catalog/...,
    /openapi.json, /healthz, /readyz.

    The calls, checks, deadlines (header Grpc-Timeout) and tokens (header Authorization) are the server's own.

    Example: sluice gateway --target 127.0.0.1:50051 --port 8080
    """
    from contracts.logs import log_to_stderr
    from serving.access.client_credentials import ClientCredentials
    from serving.access.doors import check_host, is_loopback
    from serving.gateway.app import Upstream
    from serving.gateway.body import BodyBounds
    from serving.gateway.http_server import Address, run

    log_to_stderr()
    credentials = ClientCredentials(tls=tls, ca=tls_ca, certificate=tls_certificate, key=tls_key)
    check_host(host, "--host")
    if not is_loopback(host):
        typer.echo(f"LISTENING ON {host} WITHOUT TLS: requests, answers and tokens can be read and changed on the way; "
                   "put what ends TLS in front, or listen on loopback", err=True)
    if not (credentials.secure or is_loopback(target.rpartition(":")[0])):
        typer.echo(f"ASKING {target} WITHOUT TLS: callers' tokens go there in plain text; give --tls-ca", err=True)
    upstream = Upstream(target, credentials.of_channel() if credentials.secure else None, BodyBounds(max_body_kb << 10))
    run(upstream, Address(host, port), lambda bound: typer.echo(f"gateway to {target} on http://{host}:{bound}"))
