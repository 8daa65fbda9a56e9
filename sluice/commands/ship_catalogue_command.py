"""`sluice ship-catalogue`: changes of items that one host was told, for another."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from sluice.commands.command import CallerCertificate, CallerKey, ServerAuthority, Tls, TokenFile, command


@command("ship-catalogue")
def ship_catalogue(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="of this host's `sluice serve --fresh`")],
    target: Annotated[str, typer.Option(help="HOST:PORT of the other host's server")],
    follow: Annotated[bool, typer.Option("--follow", help="go on with what comes, until interrupted")] = False,
    tls: Tls = False,
    tls_ca: ServerAuthority = None,
    tls_certificate: CallerCertificate = None,
    tls_key: CallerKey = None,
    token_file: TokenFile = None,
) -> None:
    """Send changes of items that this host has taken to another host (`sluice serve --fresh DIR`): those it lacks.

    Example: sluice ship-catalogue out/fresh-a --target 127.0.0.1:50052 --follow
    """
    from contracts.errors import SluiceError
    from serving.access.client_credentials import ClientCredentials, token_of
    from serving.server.catalog_client import CatalogClient
    from serving.server.connection import RankingFailed
    from sluice.release import catalogue_shipping

    credentials = ClientCredentials(
        tls=tls, ca=tls_ca, certificate=tls_certificate, key=tls_key, token=token_of(file=token_file))
    with CatalogClient(target, credentials) as client:
        try:
            if follow:
                catalogue_shipping.follow(folder, target, client, _show, lambda error: typer.echo(
                    f"{target} is away and tried again: {error}", err=True))
            _show(catalogue_shipping.ship(folder, target, client))
        except RankingFailed as error:
            raise SluiceError(f"{target} answered {error}") from None
        except KeyboardInterrupt:
            return


def _show(outcomes: Counter[str]) -> None:
    typer.echo(", ".join(f"{count:,} {name}" for name, count in sorted(outcomes.items())) or "nothing to send")
