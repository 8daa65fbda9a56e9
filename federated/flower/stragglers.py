"""When a phase closes: not when the last node has replied, but when enough have and the others had as long again.

Flower's own exchange asks for replies every three seconds and waits for all; nine phases of a round are then half a
minute of waiting. Replies that come after the phase has closed are not fetched.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from flwr.app import Message
from flwr.serverapp import Grid


@dataclass(frozen=True)
class Closing:
    """`enough`: share of the nodes asked; once so many have replied, the phase waits as long as they took, at least
    `grace` seconds, and closes. `poll`: seconds between two looks."""

    enough: float = 0.8
    grace: float = 5.0
    poll: float = 0.1


def gathered(grid: Grid, messages: Sequence[Message], timeout: float | None, closing: Closing) -> list[Message]:
    """The replies that came in time."""
    started, replies = time.monotonic(), list[Message]()
    missing, end = {name for name in grid.push_messages(messages) if name}, float("inf") if timeout is None else timeout
    wanted = ceil(closing.enough * len(missing))
    while missing:
        come = list(grid.pull_messages(missing))
        replies += come
        missing -= {reply.metadata.reply_to_message_id for reply in come}
        passed = time.monotonic() - started
        if come and len(replies) >= wanted > len(replies) - len(come):
            end = min(end, passed + max(passed, closing.grace))
        if passed > end:
            break
        time.sleep(closing.poll if missing else 0.0)
    return replies
