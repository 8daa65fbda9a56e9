"""`sluice catalogue`: items that change between bundles, told to a server of `sluice serve --fresh`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sluice.commands.command import (
    AsJson,
    CallerCertificate,
    CallerKey,
    ServerAuthority,
    Target,
    Tls,
    TokenFile,
    command,
    utf8,
)

if TYPE_CHECKING:
    from serving.proto.sluice_pb2 import CatalogStatus, ChangeResponse
    from serving.request.query import ContextValue
    from serving.server.catalog_client import CatalogClient, ItemChange


class Action(StrEnum):
    """What is done with the items."""

    UPSERT = "upsert"
    WITHDRAW = "withdraw"
    SET_BIDS = "set-bids"
    SET_STOCK = "set-stock"
    STATUS = "status"


@command()
def catalogue(
    action: Annotated[Action, typer.Argument(metavar="ACTION", help="upsert, withdraw, set-bids, set-stock or status")],
    items: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ITEM...]", callback=utf8, help="item ids; ITEM=NUMBER for set-bids and set-stock")
    ] = None,
    target: Target = "127.0.0.1:50051",
    value: Annotated[list[str] | None, typer.Option(
        callback=utf8,
        help="upsert: NAME=VALUE, repeatable; a number that is text (an id, a code) in quotes: \"NAME='1005'\""
    )] = None,
    bid: Annotated[float | None, typer.Option(help="upsert: what a click pays", min=0)] = None,
    stock: Annotated[float | None, typer.Option(help="upsert: how many are left", min=0)] = None,
    item_version: Annotated[
        int | None, typer.Option(min=1, max=2**63 - 1, help="rises with every change of an item; the time in"
                                 " milliseconds unless given")
    ] = None,
    timeout: Annotated[float, typer.Option(help="deadline in seconds", min=0.001)] = 10.0,
    tls: Tls = False,
    tls_ca: ServerAuthority = None,
    tls_certificate: CallerCertificate = None,
    tls_key: CallerKey = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Change items of a server between two bundles (`sluice serve --fresh DIR`), or ask how fresh it is.

    Example: sluice catalogue withdraw i_3608 i_4144 --target 127.0.0.1:50051
    """
    import time

    from contracts.errors import SluiceError
    from serving.access.client_credentials import ClientCredentials, token_of
    from serving.server.catalog_client import CatalogClient
    from serving.server.connection import RankingFailed
    from sluice.commands.rank_command import how_to_quote, parse_values

    version = time.time_ns() // 1_000_000 if item_version is None else item_version
    changes = parse_changes(action, items or [], version, parse_values(value or [], "--value"), bid, stock)
    credentials = ClientCredentials(
        tls=tls, ca=tls_ca, certificate=tls_certificate, key=tls_key, token=token_of(file=token_file))
    with CatalogClient(target, credentials) as client:
        try:
            answer = client.status(timeout) if action is Action.STATUS else _sent(client, action, changes, timeout)
        except RankingFailed as error:
            cure = how_to_quote(str(error), value or [], "--value")
            raise SluiceError(f"{target} answered {error}{cure}") from None
    _show(answer, as_json, value or [])


def parse_changes(
    action: Action, items: Sequence[str], version: int, values: dict[str, ContextValue], bid: float | None,
    stock: float | None,
) -> list[ItemChange]:
    """Raises ConfigError for no item, no ITEM=NUMBER where one is needed, and options of another action."""
    from contracts.errors import ConfigError
    from serving.server.catalog_client import ItemChange

    if action is not Action.UPSERT and (values or bid is not None or stock is not None):
        raise ConfigError(f"--value, --bid and --stock are of upsert, not of {action}; leave them out")
    if (action is Action.STATUS) == bool(items):
        raise ConfigError("status takes no items" if items else f"{action} needs at least one item; name it")
    if action not in (Action.SET_BIDS, Action.SET_STOCK):
        return [ItemChange(item=item, version=version, values=values, bid=bid, stock=stock) for item in items]
    numbers, bids = [_with_number(pair, action) for pair in items], action is Action.SET_BIDS
    return [ItemChange(item=item, version=version, bid=number if bids else None, stock=None if bids else number)
            for item, number in numbers]


def _with_number(pair: str, action: Action) -> tuple[str, float]:
    from contracts.errors import ConfigError

    item, _, number = pair.rpartition("=")
    try:
        return item, float(number) if item else float("x")
    except ValueError:
        raise ConfigError(f"{pair!r} is not ITEM=NUMBER, as {action} needs it: ad_17=1.5") from None


def _sent(
    client: CatalogClient, action: Action, changes: list[ItemChange], seconds: float
) -> ChangeResponse:
    method = {Action.UPSERT: client.upsert, Action.WITHDRAW: client.withdraw, Action.SET_BIDS: client.set_bids,
              Action.SET_STOCK: client.set_stock}[action]
    return method(changes, seconds)


def _show(answer: CatalogStatus | ChangeResponse, as_json: bool, values: list[str]) -> None:
    """One JSON object, a line per figure of a status, or one per item; `values` as they were given."""
    import json

    from google.protobuf.json_format import MessageToDict

    from serving.proto.sluice_pb2 import ChangeResponse

    found = MessageToDict(answer, always_print_fields_with_no_presence=True)
    if as_json:
        typer.echo(json.dumps(found))
    elif isinstance(answer, ChangeResponse):
        show_outcomes(answer, values)
    else:
        plain = MessageToDict(answer, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
        typer.echo("\n".join(f"{name}: {told}" for name, told in plain.items()))


def show_outcomes(answer: ChangeResponse, values: list[str]) -> None:
    """Raises Exit 1 where an item was refused; `values` are the NAME=VALUE of the command."""
    from serving.proto.sluice_pb2 import ChangeResult
    from sluice.commands.rank_command import how_to_quote

    for result in answer.results:
        why = f": {result.field} {result.problem}" if result.problem else ""
        why += how_to_quote(why, values, "--value")
        typer.echo(f"{result.item_id}  {ChangeResult.Outcome.Name(result.outcome).lower()}{why}")
    if any(result.outcome == ChangeResult.REFUSED for result in answer.results):
        raise typer.Exit(1)
