"""A request's body within its bounds: of bytes and seconds while it is read, of parts before it is parsed.

What has many parts is parsed beside the event loop, one at a time, so that nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import Message
from starlette.requests import ClientDisconnect, Request

from contracts.errors import RequestError
from contracts.shown import short, shown
from serving.access.caller_name import machine
from serving.batches.batch_turns import BatchTurns
from serving.gateway.json_messages import to_message

MOST_PARTS, FEW_PARTS, FEW_BYTES = 50_000, 500, 64 << 10
JSON = "application/json"
Made = TypeVar("Made", bound=Message)


class NotTaken(Exception):
    """A body that is no request for a reason of its own: as gRPC and as HTTP call it."""

    status, http = "INVALID_ARGUMENT", 400


class TooLarge(NotTaken):
    """The body has more bytes, or parts, than may be."""

    http = 413


class TooSlow(NotTaken):
    """The body did not come in time; what comes of it later is no request."""

    status, http = "DEADLINE_EXCEEDED", 408


class HungUp(NotTaken):
    """The caller has gone before the body was there; nobody hears of it."""

    status, http = "CANCELLED", 499


class NotJson(NotTaken):
    """The body says that it is something else, as the form of a stranger's page would."""

    http = 415


@dataclass(frozen=True)
class BodyBounds:
    """Of one body."""

    most_bytes: int = 1 << 20
    most_seconds: float = 10.0


async def read(request: Request, bounds: BodyBounds) -> bytes:
    """Raises TooLarge before more than `most_bytes` are kept, TooSlow and HungUp."""
    held = bytearray()
    try:
        async with asyncio.timeout(bounds.most_seconds):
            async for chunk in request.stream():
                held += chunk
                if len(held) > bounds.most_bytes:
                    raise TooLarge(f"the body has more than {bounds.most_bytes} bytes; send less at once")
    except TimeoutError:
        raise TooSlow(f"the body took more than {bounds.most_seconds:g} s to come; send less at once, or faster"
                      ) from None
    except ClientDisconnect:
        raise HungUp("the caller hung up") from None
    return bytes(held)


def check_type(request: Request) -> None:
    """A page of another site may send forms and plain text to whatever its reader can reach, JSON only where it is
    allowed to. Raises NotJson."""
    told = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if told != JSON:
        raise NotJson(f"the body is {shown(told) if told else 'of no type'}; send JSON, with Content-Type: {JSON}")


def caller(request: Request) -> str:
    """Whose turns a large body takes: the server behind has not said yet who calls."""
    return machine(request.client.host if request.client else "")


async def message(body: bytes, empty: Made, turns: BatchTurns, who: str) -> Made:
    """`empty`, filled; a large one in the turns of `who`. Raises RequestError, TooLarge and NoPlace."""
    parts = body.count(b",") + body.count(b"{") + body.count(b"[")
    if parts > MOST_PARTS:
        raise TooLarge(f"the body has {parts} commas and opened brackets, the limit is {MOST_PARTS}; send less at once")
    if parts <= FEW_PARTS and len(body) <= FEW_BYTES:
        return to_message(_parsed(body), empty)
    return await turns.take(who, lambda: to_message(_parsed(body), empty))


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError("body", f"is no JSON: {short(str(error))}") from None
