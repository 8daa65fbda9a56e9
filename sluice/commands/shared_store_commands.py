"""Stores beside the bundle: a day's users, in a folder or a Redis that hosts share, and the stream of events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sluice.commands.command import AsJson, RunFolder, command, show


@command("publish-features")
def publish_features(
    out: RunFolder,
    store: Annotated[
        str, typer.Option(envvar="SLUICE_USER_STORE", metavar="PLACE", help="what a server has as --fresh, or a Redis"
                          " or Valkey that servers share: redis://HOST:PORT/DB")
    ],
    keep_seconds: Annotated[
        int, typer.Option(min=10, help="how long a Redis keeps the version that was read before for who still reads it")
    ] = 3600,
    older: Annotated[
        bool, typer.Option("--older", help="also in place of later users, to go back to a day before")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a run's online table of users into a store of running servers; they change to it as one version.

    Example: sluice publish-features out/demo --store out/fresh
    """
    from contracts.artifacts import Artifacts
    from serving.users.user_publisher import publish_users

    found = publish_users(Artifacts(out), store, keep_seconds, older)
    typer.echo(f"{found.rows} users as of {found.published:%Y-%m-%d %H:%M} UTC are version {found.version}")
    show(found, as_json)


@command("replay-events")
def replay_events(
    fresh: Annotated[Path, typer.Argument(metavar="FOLDER", help="what the server has as --fresh")],
    stream: Annotated[
        str, typer.Option(envvar="SLUICE_EVENT_STREAM", metavar="ADDRESS", help="a Redis or Valkey: redis://HOST:PORT/DB")
    ],
    after: Annotated[str, typer.Option(help="the id of an entry, MILLISECONDS or MILLISECONDS-NUMBER; 0 is all")] = "0",
) -> None:
    """Let a host read its stream of events again from an offset; what it has recorded does not count twice.

    Example: sluice replay-events out/fresh --stream redis://127.0.0.1:6379/0 --after 1767600000000
    """
    from serving.events.event_stream import replay

    typer.echo(f"{replay(fresh, stream, after)} reads again what was added after {after}")
