"""Messages out, replies in as they come, and when a phase closes: not when the last node has replied, but when enough
have and the others had as long again.

Flower's own exchange asks for replies every three seconds and hands on all of them when it has waited for the last.
Here messages are made and sent a few at a time, and replies fetched a few at a time between them and after: whoever
takes them works while the others are on their way, and neither is ever all in memory. Replies that come after the phase
has closed are not fetched.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from math import ceil
from typing import TypeVar

from flwr.app import Message
from flwr.serverapp import Grid

SENT_TOGETHER, FETCHED_TOGETHER = 16, 64
Item = TypeVar("Item")


@dataclass(frozen=True)
class Closing:
    """`enough`: share of the nodes asked; once so many have replied, the phase waits as long as they took, at least
    `grace` seconds, and closes. `poll`: seconds between two looks."""

    enough: float = 0.8
    grace: float = 5.0
    poll: float = 0.1


def gathered(
    grid: Grid, messages: Iterable[Message], timeout: float | None, closing: Closing,
    about: Callable[[Message], Collection[str]] = lambda message: ("",), together: int = SENT_TOGETHER,
) -> Iterator[Message]:
    """The replies that come in time, in the order in which they do. A message is `about` one thing or several; of all
    that are about a thing there are to be enough."""
    started = looked = time.monotonic()
    end, missing, asked = float("inf") if timeout is None else timeout, set[str](), dict[str, Collection[str]]()
    for few in parts(messages, together):
        names = {name: about(message) for name, message in zip(grid.push_messages(few), few, strict=True) if name}
        missing, asked = missing | names.keys(), asked | names
        if time.monotonic() - looked >= closing.poll:
            yield from _come(grid, missing)
            looked = time.monotonic()
    sent, enough = Counter(chain(*asked.values())), False
    while missing:
        yield from _come(grid, missing)
        passed = time.monotonic() - started
        if not enough and _few(Counter(chain(*map(asked.__getitem__, missing))), sent, closing.enough):
            enough, end = True, min(end, passed + max(passed, closing.grace))
        if passed > end:
            break
        time.sleep(closing.poll if missing else 0.0)


def _few(missing: Counter[str], sent: Counter[str], enough: float) -> bool:
    return all(count <= sent[what] - ceil(enough * sent[what]) for what, count in missing.items())


def at_once(grid: Grid, messages: Iterable[Message], together: int = SENT_TOGETHER) -> Iterator[Message]:
    """The replies of nodes that have replied, or never will, as soon as they are sent something."""
    for few in parts(messages, together):
        yield from grid.pull_messages(list(grid.push_messages(few)))


def _come(grid: Grid, missing: set[str]) -> Iterator[Message]:
    """What has come of the missing, which are fewer by it."""
    for few in parts(sorted(missing), FETCHED_TOGETHER):
        for reply in grid.pull_messages(few):
            missing.discard(reply.metadata.reply_to_message_id)
            yield reply


def parts(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """So many at a time, taken when they are wanted."""
    left = iter(items)
    while part := list(islice(left, size)):
        yield part
