"""Tokens for callers of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sluice.commands.command import command


@command()
def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="who will call with it")],
    file: Annotated[Path, typer.Option(help="a new file for the token, which nobody else may read")],
    role: Annotated[
        list[str] | None, typer.Option(help="ranking, events, catalogue or administration; repeatable")
    ] = None,
    expires: Annotated[str | None, typer.Option(help="the token ends then: 2027-01-31 or 2027-01-31T12:00:00")] = None,
) -> None:
    """Make a token: the file is the caller's, the printed lines go into the file of `sluice serve --access`.

    Example: sluice token shop --file shop.token --expires 2027-06-30 >> access.toml
    """
    from contracts.config.section import instant
    from serving.access.new_token import entry, make, write

    made = make()
    lines = entry(made, name, role or ["ranking"], instant(expires))
    write(made, file)
    typer.echo(lines)
