"""A request's body within its bounds: of bytes and seconds while it is read, of parts before it is parsed.

What has many parts is parsed beside the event loop, one at a time, so that nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import Message
from starlette.requests import Request

from contracts.errors import RequestError
from contracts.shown import short
from serving.gateway.json_messages import to_message
from serving.request.batch_turns import BatchTurns

MOST_PARTS, FEW_PARTS, FEW_BYTES = 50_000, 500, 64 << 10
Made = TypeVar("Made", bound=Message)


class TooLarge(Exception):
    """The body has more bytes, or parts, than may be."""


class TooSlow(Exception):
    """The body did not come in time."""


@dataclass(frozen=True)
class BodyBounds:
    """Of one body."""

    most_bytes: int = 1 << 20
    most_seconds: float = 10.0


async def read(request: Request, bounds: BodyBounds) -> bytes:
    """Raises TooLarge before more than `most_bytes` are kept, and TooSlow."""
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
    return bytes(held)


async def message(body: bytes, empty: Made, turns: BatchTurns) -> Made:
    """`empty`, filled. Raises RequestError, TooLarge and TooManyBatches."""
    parts = body.count(b",") + body.count(b"{") + body.count(b"[")
    if parts > MOST_PARTS:
        raise TooLarge(f"the body has {parts} commas and opened brackets, the limit is {MOST_PARTS}; send less at once")
    if parts <= FEW_PARTS and len(body) <= FEW_BYTES:
        return to_message(_parsed(body), empty)
    return await turns.take(lambda: to_message(_parsed(body), empty))


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError("body", f"is no JSON: {short(str(error))}") from None
