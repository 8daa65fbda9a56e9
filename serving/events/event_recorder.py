"""Batches of events -> the store: those that come while a commit is under way share the next one.

A commit waits for the disk, in a thread of its own, so that no request does. What waits is bounded, and a quarter of it
is one caller's.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from contracts.errors import SluiceError
from contracts.features.event_clock import SECOND
from contracts.shown import short
from contracts.thread_name import name_thread
from serving.batches.places import NoPlace, Places
from serving.batches.trouble import Trouble
from serving.events.event import Event
from serving.events.event_store import Clock, EventStore, Recorded

MOST_WAITING, MOST_BYTES = 50_000, 64 << 20  # events, and of their messages
MOST_SECONDS = 1.0  # that a caller waits until its events are known; more only where the clock was set back
log = logging.getLogger("sluice.serving")
AGAIN = "send them again later, or elsewhere"


class TooMany(SluiceError):
    """More events wait for the disk than may, or larger ones, of all callers or of one."""


class NotKept(SluiceError):
    """The disk refused them; none of the batch is kept."""


Told = Callable[[Sequence[str]], None]
Refused = Callable[[str, int], None]  # of so many events that came by a "call" or the "stream"


def nobody(kinds: Sequence[str]) -> None:
    """Hears nothing."""


def unheeded(by: str, events: int) -> None:
    """Nobody hears of refused events."""


class Batch(NamedTuple):
    """And who waits for it, and for whom; `size` in bytes, as it came."""

    who: str
    events: Sequence[Event]
    size: int
    done: asyncio.Future[Recorded]


class EventRecorder:
    """`record` belongs to one event loop; the store is opened by, and for, the thread that writes, in which `told`
    hears of the kinds of new events, also of those whose caller has gone."""

    def __init__(
        self, opened: Callable[[], EventStore], clock: Clock, most: int = MOST_WAITING, told: Told = nobody
    ) -> None:
        self._thread, self._lock = ThreadPoolExecutor(1, "events", name_thread), threading.Lock()
        self._clock, self._told = clock, told
        self._batches, self._busy = list[Batch](), False
        self._waiting = Places(most, "events wait for the disk", AGAIN)
        self._bytes = Places(MOST_BYTES, "bytes of events wait for the disk", AGAIN)
        self._store, self._set_back = self._thread.submit(opened).result(), False
        self._disk = Trouble("events cannot be stored (%s); their senders are told, until they can",
                             "events are stored again")
        self._figures = Trouble("new events cannot be counted by kind (%s)", "new events are counted by kind again")

    async def record(self, events: Sequence[Event], size: int = 0, who: str = "") -> Recorded:
        """Once they are on the disk, and known to whoever asks; `size` in bytes. Where the clock was ahead before, they
        are known when it is there again, for which nobody waits. Raises TooMany, NotKept."""
        if not events:
            return Recorded(0, 0)
        batch = Batch(who, events, size, asyncio.get_running_loop().create_future())
        with self._lock:
            self._enter(batch)
            idle, self._busy = not self._busy, True
        if idle:
            self._thread.submit(self._drain)
        recorded = await batch.done
        ahead = (recorded.known - self._clock()) / SECOND
        self._say_once(ahead)
        await asyncio.sleep(min(max(ahead, 0), MOST_SECONDS))
        return recorded

    def _say_once(self, ahead: float) -> None:
        """Until the clock has been there again."""
        is_set_back = ahead > MOST_SECONDS
        if is_set_back and not self._set_back:
            log.error("the clock was set back, or was ahead before: the latest events are known %.1f s from now; "
                      "they are kept in their order, and requests use them from then on; keep the host's clock by NTP, "
                      "without steps", ahead)
        self._set_back = is_set_back

    def close(self) -> None:
        """Waits for what is being written."""
        self._thread.submit(self._store.close)
        self._thread.shutdown(wait=True)

    def _enter(self, batch: Batch) -> None:
        try:
            self._waiting.take(batch.who, len(batch.events))
        except NoPlace as error:
            raise TooMany(str(error)) from None
        try:
            self._bytes.take(batch.who, batch.size)
        except NoPlace as error:
            self._waiting.leave(batch.who, len(batch.events))
            raise TooMany(str(error)) from None
        self._batches.append(batch)

    def _drain(self) -> None:
        while batches := self._taken():
            try:
                found = self._store.record([batch.events for batch in batches])
            except Exception as error:  # whoever waits is told, and the next batch is taken
                self._disk.say(short(str(error)) or type(error).__name__)
                why = NotKept(f"the events could not be written ({short(str(error))}); none is kept: send them again")
                for batch in batches:
                    _settle(batch, why)
            else:
                self._disk.say("")
                self._tell(found)
                for batch, recorded in zip(batches, found, strict=True):
                    _settle(batch, recorded)

    def _tell(self, found: Sequence[Recorded]) -> None:
        """What fails here costs its own figure, not the events: who records them waits behind it."""
        try:
            self._told([kind.name.lower() for recorded in found for kind in recorded.kinds])
        except Exception as error:
            self._figures.say(short(str(error)) or type(error).__name__)
        else:
            self._figures.say("")

    def _taken(self) -> list[Batch]:
        with self._lock:
            found, self._batches = self._batches, []
            for batch in found:
                self._waiting.leave(batch.who, len(batch.events))
                self._bytes.leave(batch.who, batch.size)
            self._busy = bool(found)
            return found


def _settle(batch: Batch, outcome: Recorded | SluiceError) -> None:
    def told() -> None:
        if batch.done.done():
            return
        if isinstance(outcome, SluiceError):
            batch.done.set_exception(outcome)
        else:
            batch.done.set_result(outcome)

    batch.done.get_loop().call_soon_threadsafe(told)
