"""How much one request may hold: counts of everything and lengths of all text, looked at before anything is made of it.

    candidates, described items     serve.max_candidates, of all placements together
    placements                      serve.max_placements
    context values, filters, ranges, values that describe one item       serve.max_fields
    recent items, values of a filter, of a list                  serve.max_values
    ids, names, texts               serve.max_text characters

What is larger than `serve.max_request_kb` is refused unparsed; what is larger than GRPC_READS times that, gRPC itself
refuses unread, for which its caller waits for 0.1 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from contracts.config.stages import Serve
from contracts.errors import RequestError
from contracts.shown import short, shown

GRPC_READS = 4
BY_COLUMN = ("filters", "excluded", "ranges")
NO_REQUEST = "what was sent is no request of this method; send one as serving/proto/sluice.proto says"


def channel_options(serve: Serve) -> list[tuple[str, int]]:
    """gRPC's words for it; of a compressed message it unpacks no more than that."""
    return [("grpc.max_receive_message_length", GRPC_READS * largest_message(serve))]


def largest_message(serve: Serve) -> int:
    """Bytes of a request that is parsed."""
    return 1024 * serve.max_request_kb


def too_large(size: int, largest: int) -> str:
    """Why a message of `size` bytes is refused."""
    return (f"the message has {size} bytes, larger than max: {largest} bytes (serve.max_request_kb); send fewer "
            "candidates, or less of each")


class OutOfBounds(RequestError):
    """The request holds more than one may; nothing has been made of it."""


def said(request: Message) -> dict[str, Any]:
    """What a request sets, by name: one look in place of one for each field that it may have."""
    return {field.name: value for field, value in request.ListFields()}


def check_rank_counts(given: Mapping[str, Any], serve: Serve) -> None:
    """Of what a RankRequest has `said`. Raises OutOfBounds for the first thing of which there is too much."""
    placements = given.get("placements", ())
    at_most("placements", placements, serve.max_placements, "max_placements")
    listed = len(given.get("candidates", ()))
    if "candidate_list" in given:
        listed += len(given["candidate_list"].item_ids)
    _few("candidates", listed, serve.max_candidates, "max_candidates")
    in_placements = sum(len(placement.candidate_list.item_ids) for placement in placements) if placements else 0
    _few("placements", in_placements, serve.max_candidates, "max_candidates", "candidates together")
    _few_columns("", given, serve)
    for number, placement in enumerate(placements):
        own = said(placement)
        at_most(f"placements[{number}].context", own.get("context", ()), serve.max_fields, "max_fields")
        _few_columns(f"placements[{number}].", own, serve)
    _check_common(given, serve)


def _few_columns(where: str, given: Mapping[str, Any], serve: Serve) -> None:
    for name in BY_COLUMN:
        if name in given:
            at_most(where + name, given[name], serve.max_fields, "max_fields")


def check_score_counts(given: Mapping[str, Any], serve: Serve) -> None:
    """Of what a ScoreRequest has `said`. Raises OutOfBounds."""
    at_most("item_ids", given.get("item_ids", ()), serve.max_candidates, "max_candidates")
    _check_common(given, serve)


def _check_common(given: Mapping[str, Any], serve: Serve) -> None:
    at_most("context", given.get("context", ()), serve.max_fields, "max_fields")
    at_most("features", given.get("features", ()), serve.max_candidates, "max_candidates")
    if "recent_items" in given:
        at_most("recent_items", given["recent_items"].item_ids, serve.max_values, "max_values")
    for name in ("user_id", "request_id"):
        text(name, given.get(name, ""), serve)


def at_most(where: str, values: Sized, limit: int, setting: str) -> None:
    """Raises OutOfBounds where there are more."""
    _few(where, len(values), limit, setting)


def text(where: str, value: str, serve: Serve) -> str:
    """The text itself. Raises OutOfBounds where it is too long."""
    if len(value) > serve.max_text:
        raise OutOfBounds(where, f"is {shown(value)}, {len(value)} characters long, at most {serve.max_text} are "
                                 "allowed (serve.max_text); send a shorter one")
    return value


def micros(when: Timestamp, where: str) -> int:
    """Since 1970. Raises RequestError where it is no time of the years 1 to 9999."""
    try:
        return int(when.ToMicroseconds())
    except ValueError as error:
        raise RequestError(where, f"is no time ({short(str(error))}); send one of the years 1 to 9999") from None


def texts(where: str, values: Iterable[str], serve: Serve) -> tuple[str, ...]:
    """All of them. Raises OutOfBounds where one is too long."""
    found = tuple(values)
    if max(map(len, found), default=0) > serve.max_text:
        for place, one in enumerate(found):
            text(f"{where}[{place}]", one, serve)
    return found


def _few(where: str, count: int, limit: int, setting: str, what: str = "entries") -> None:
    if count > limit:
        raise OutOfBounds(where, f"has {count} {what}, at most {limit} are allowed (serve.{setting}); send fewer")
