"""The server and the smallest client."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sluice.commands.command import AsJson, app, reported


@app.command()
@reported
def serve(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="a bundle's folder, or models:/NAME@ALIAS")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one")] = 50051,
    host: Annotated[str, typer.Option()] = "127.0.0.1",
    log_answers: Annotated[
        Path | None, typer.Option(help="append every answer to the Parquet log in this folder")
    ] = None,
    registry: Annotated[str | None, typer.Option(help="MLflow's address; else MLFLOW_TRACKING_URI")] = None,
    poll_seconds: Annotated[float, typer.Option(min=0.1, help="how often the alias is looked up")] = 5.0,
    connection_seconds: Annotated[
        float, typer.Option(min=0.5, help="an alias: how long a caller's connection lives; a change takes as long")
    ] = 30.0,
) -> None:
    """Serve a bundle over gRPC (sluice.v1.Ranking, health, reflection) until SIGTERM or Ctrl-C.

    Of an alias the bundle is changed whenever the alias moves, without a failed request.

    Example: sluice serve models:/marketplace@champion --log-answers out/demo/answers
    """
    from sluice.commands.serve_command import serve as serve_bundle

    serve_bundle(bundle, host, port, log_answers, registry, poll_seconds, connection_seconds)


@app.command()
@reported
def rank(
    user: Annotated[str, typer.Option(help="user id; an unknown one is answered too")],
    target: Annotated[str, typer.Option(help="HOST:PORT")] = "127.0.0.1:50051",
    limit: Annotated[int | None, typer.Option(help="number of items")] = None,
    context: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, repeatable")] = None,
    recent: Annotated[list[str] | None, typer.Option(help="recent item ids, newest first, repeatable")] = None,
    timeout: Annotated[float, typer.Option(help="deadline in seconds", min=0.001)] = 1.0,
    as_json: AsJson = False,
) -> None:
    """The smallest client.

    Example: sluice rank --user u_00017 --context device=phone --limit 5 --json
    """
    from sluice.commands.rank_command import rank_once

    rank_once(user, target, limit, context or [], recent, timeout, as_json)
