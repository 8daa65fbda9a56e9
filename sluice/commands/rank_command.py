"""`sluice rank`: one request to a running server, printed for people or as JSON."""

from __future__ import annotations

import typer
from google.protobuf.json_format import MessageToJson

from contracts.errors import ConfigError, SluiceError
from serving.proto.sluice_pb2 import RankResponse
from serving.request.query import ContextValue
from serving.server.client import RankingClient, RankingFailed


def parse_context(pairs: list[str]) -> dict[str, ContextValue]:
    """ "hour=7" -> {"hour": 7}; quotes keep a number as text: "zip='02139'"."""
    context: dict[str, ContextValue] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise ConfigError(f"--context {pair!r} is not NAME=VALUE")
        context[name] = _typed(text)
    return context


def _typed(text: str) -> ContextValue:
    if text in ("true", "false"):
        return text == "true"
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def rank_once(
    user: str,
    target: str,
    limit: int | None,
    context: list[str],
    recent: list[str] | None,
    timeout: float,
    as_json: bool,
) -> None:
    with RankingClient(target) as client:
        try:
            answer = client.rank(
                user, limit=limit, context=parse_context(context), recent_items=recent, seconds=timeout
            )
        except RankingFailed as error:
            raise SluiceError(f"{target} answered {error}") from None
    typer.echo(MessageToJson(answer, indent=None) if as_json else describe(answer))


def describe(answer: RankResponse) -> str:
    lines = [f"{answer.bundle_version}  {'known' if answer.known_user else 'unknown'} user"]
    for place, item in enumerate(answer.items, start=1):
        price = f"  price {item.price:.4f}" if item.HasField("price") else ""
        reasons = ", ".join(f"{reason.field} {reason.logit_change:+.2f}" for reason in item.reasons)
        lines.append(
            f"{place:>3}  {item.item_id:<12} p {item.probability:.4f}  score {item.score:.4f}{price}  "
            f"[{item.channel}]  {reasons}"
        )
    lines += [
        f"     {s.name}: {s.candidates_in} -> {s.candidates_out} in {s.microseconds} us"
        + (f" ({s.cause})" if s.cause else "")
        for s in answer.stages
    ]
    return "\n".join(lines)
