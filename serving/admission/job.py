"""What is admitted and then run: by a thread of the engine, or a turn of its event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from serving.admission.admission import Waiting
from serving.request.deadline import Deadline

Made = TypeVar("Made", covariant=True)
Settle = Callable[[asyncio.Future[Any], Any], None]
Tell = Callable[[Settle, asyncio.Future[Any], Any], None]
log = logging.getLogger("sluice.serving")


class Run(Protocol[Made]):
    """What can be run: `complete` once, `salvage` at any time where a partial answer will do, and `simplify` before it
    begins, to a level of serving/admission/brown_out.py. With fewer than `least` seconds there is no answer. A `brief`
    one takes a few milliseconds at most, whatever its time."""

    deadline: Deadline

    @property
    def brief(self) -> bool: ...
    @property
    def partial_ok(self) -> bool: ...
    @property
    def least(self) -> float: ...
    def simplify(self, level: int) -> None: ...
    def complete(self) -> Made: ...
    def salvage(self) -> Made: ...


@dataclass(eq=False, kw_only=True)
class Job(Waiting):
    """A run and who waits for it. `overdue`: nobody does any more, and a spare has taken its thread's place. What it
    takes from `charged_to` on has not been charged to its tenant's turns."""

    run: Run[Any]
    answer: asyncio.Future[Any]
    charged_to: float = 0.0
    running: bool = False
    finished: bool = False
    overdue: bool = False


def succeed(answer: asyncio.Future[Any], found: Any) -> None:
    if not answer.done():
        answer.set_result(found)


def fail(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)


def tell_loop(settle: Settle, answer: asyncio.Future[Any], found: Any) -> None:
    """From a thread."""
    try:
        answer.get_loop().call_soon_threadsafe(settle, answer, found)
    except RuntimeError:  # the loop has been closed: nobody waits any more
        log.debug("a run ended after the event loop")
