"""The smallest client: an answer printed for people or as JSON, and why an item is not in it."""

from __future__ import annotations

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
    from serving.proto.sluice_pb2 import ItemFate, PlacementResponse, RankResponse, WhyNotResponse
    from serving.request.query import ContextValue, Scalar
    from serving.server.client import Placement

MOST_ITEMS = 2**32 - 1  # an uint32 of the request
LEAST_WHOLE, MOST_WHOLE = -(2**63), 2**63 - 1


@command()
def rank(
    user: Annotated[str, typer.Option(callback=utf8, help="user id; an unknown one is answered too")],
    target: Target = "127.0.0.1:50051",
    limit: Annotated[int | None, typer.Option(min=1, max=MOST_ITEMS, help="number of items")] = None,
    context: Annotated[list[str] | None, typer.Option(
        callback=utf8,
        help="NAME=VALUE, repeatable; a number that is text (an id, a code) in quotes: \"NAME='1005'\"")] = None,
    recent: Annotated[
        list[str] | None, typer.Option(callback=utf8, help="recent item ids, newest first, repeatable")] = None,
    candidate: Annotated[
        list[str] | None, typer.Option(callback=utf8, help="rank these items alone, repeatable")] = None,
    placement: Annotated[
        list[str] | None, typer.Option(callback=utf8, help="NAME=LIMIT, repeatable: several slates, no item twice")
    ] = None,
    reasons: Annotated[bool, typer.Option("--reasons", "--explain", help="say why, for every item")] = False,
    why_not: Annotated[
        list[str] | None,
        typer.Option(metavar="ITEM", callback=utf8, help="say which stage dropped this item, repeatable")
    ] = None,
    timeout: Annotated[float, typer.Option(help="deadline in seconds", min=0.001)] = 1.0,
    tls: Tls = False,
    tls_ca: ServerAuthority = None,
    tls_certificate: CallerCertificate = None,
    tls_key: CallerKey = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """The smallest client.

    Example: sluice rank --user u_00017 --context device=phone --limit 5 --reasons --why-not i_0042
    """
    from contracts.errors import SluiceError
    from serving.access.client_credentials import ClientCredentials, token_of
    from serving.server.client import RankingClient
    from serving.server.connection import RankingFailed

    values = parse_values(context or [])
    credentials = ClientCredentials(
        tls=tls, ca=tls_ca, certificate=tls_certificate, key=tls_key, token=token_of(file=token_file))
    with RankingClient(target, credentials) as client:
        try:
            answer = client.rank(
                user, limit=limit, context=values, candidates=candidate, recent_items=recent, reasons=reasons,
                placements=parse_placements(placement or []), seconds=timeout)
            fates = client.why_not(user, why_not, limit=limit, context=values, candidates=candidate,
                                   recent_items=recent, seconds=timeout) if why_not else None
        except RankingFailed as error:
            raise SluiceError(f"{target} answered {error}{how_to_quote(str(error), context or [])}") from None
    if as_json:
        typer.echo(with_fates(answer, fates))
        return
    typer.echo(describe(answer))
    for fate in fates.items if fates else ():
        typer.echo(describe_fate(fate))


def parse_values(pairs: list[str], option: str = "--context") -> dict[str, ContextValue]:
    """ "hour=7" -> {"hour": 7}; quotes of either kind keep a number as text: "zip='02139'"; several values of a field
    follow one another: ["tags=a", "tags=b"]. Raises ConfigError, with the `option`, for no NAME=VALUE and for a whole
    number of more than 64 bits."""
    from contracts.errors import ConfigError
    from contracts.shown import short

    values: dict[str, ContextValue] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise ConfigError(f"{option} {pair!r} is not NAME=VALUE, as in device=phone")
        value, before = _typed(text), values.get(name)
        if isinstance(value, int) and not LEAST_WHOLE <= value <= MOST_WHOLE:
            raise ConfigError(f"{option} {short(pair)} is a whole number outside {LEAST_WHOLE} to {MOST_WHOLE}; "
                              f"{as_text(name, text, option)}")
        values[name] = value if before is None else (*(before if isinstance(before, tuple) else (before,)), value)
    return values


def how_to_quote(problem: str, pairs: list[str], option: str = "--context") -> str:
    """The cure, where a server's `problem` is that it needs text and one of `pairs` was taken for a number or a bool;
    else "". Quotes of both kinds: a shell takes the outer ones away."""
    if "string is needed" not in problem:
        return ""
    for name, _, text in (pair.partition("=") for pair in pairs):
        if name in problem and not isinstance(_typed(text), str):
            return f"; {as_text(name, text, option)}"
    return ""


def as_text(name: str, text: str, option: str) -> str:
    """The cure where a number is meant as text, of at most 80 characters of either."""
    from contracts.shown import short

    return f"say that it is text by quotes within quotes: {option} \"{short(name)}='{short(text)}'\""


def parse_placements(pairs: list[str]) -> list[Placement]:
    """ "top=3" -> three items for the placement "top". Raises ConfigError for no NAME=LIMIT, and for a limit that a
    request cannot hold."""
    from contracts.errors import ConfigError
    from contracts.shown import shown
    from serving.server.client import Placement

    split = [pair.partition("=") for pair in pairs]
    for pair, (name, _, limit) in zip(pairs, split, strict=True):
        if not (name and limit.isdecimal()):
            raise ConfigError(f"--placement {pair!r} is not NAME=LIMIT, as in top=3")
        if len(limit.lstrip("0")) > len(str(MOST_ITEMS)) or int(limit) > MOST_ITEMS:
            raise ConfigError(f"--placement {shown(pair)} asks for more than {MOST_ITEMS} items; give a smaller LIMIT")
    return [Placement(name, int(limit)) for name, _, limit in split]


def _typed(text: str) -> Scalar:
    if text in ("true", "false"):
        return text == "true"
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def with_fates(answer: RankResponse, fates: WhyNotResponse | None) -> str:
    """The answer as JSON in one line, with the fates of items as its key `whyNot` where they were asked for."""
    import json

    from google.protobuf.json_format import MessageToDict

    told = {"whyNot": MessageToDict(fates)["items"]} if fates else {}
    return json.dumps({**MessageToDict(answer), **told})


def describe_fate(fate: ItemFate) -> str:
    """One line: the stage that dropped an item, its score and the score it needed; of one that is shown its place, and
    what put it there where a rule did."""
    if fate.position:
        return f"     {fate.item_id} is shown at {fate.position}{f', {fate.cause}' if fate.cause else ''}"
    scores = f": {fate.measure} {fate.score:.6g}" if fate.HasField("score") else ""
    if scores and fate.HasField("needed"):
        scores += f", needed {fate.needed:.6g}"
    return f"     {fate.item_id} was dropped by {fate.stage}, {fate.cause}{scores}"


def describe(answer: RankResponse) -> str:
    """One line per item with probability, price and reasons, then one per stage with its cause where it was cut."""
    lines = [f"{answer.bundle_version}  {'known' if answer.known_user else 'unknown'} user", *_slate(answer)]
    for placement in answer.placements:
        lines += [f"{placement.name}:", *_slate(placement)]
    return "\n".join(lines)


def _slate(answer: RankResponse | PlacementResponse) -> list[str]:
    lines = []
    for place, item in enumerate(answer.items, start=1):
        price = f"  price {item.price:.4f}" if item.HasField("price") else ""
        reasons = ", ".join(f"{reason.field} {reason.logit_change:+.2f}" for reason in item.reasons)
        lines.append(
            f"{place:>3}  {item.item_id:<12} p {item.probability:.4f}  score {item.score:.4f}{price}  "
            f"[{item.channel}]  {reasons}"
        )
    if answer.unknown_candidates:
        lines.append(f"     unknown: {', '.join(answer.unknown_candidates)}")
    return lines + [
        f"     {stage.name}: {stage.candidates_in} -> {stage.candidates_out} in {stage.microseconds} us"
        + (f" ({stage.cause})" if stage.cause else "")
        for stage in answer.stages
    ]
