"""What long work shows: a bar, rate and remaining time on a terminal, plain lines elsewhere (logs, CI, schedulers), or
lines of JSON on standard error (contracts/logs.py). What work inside reports (contracts/progress.py) is shown, too."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from contracts.logs import are_json, fields, log_to_stderr
from contracts.progress import heard_by

log = logging.getLogger("sluice.jobs")
EVERY = 10.0  # seconds between two lines on one piece of work
SILENCE = 30.0  # seconds after which work that says nothing is named again


class Rate(ProgressColumn):
    """Units a second, of batches, candidates or whatever the work counts."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else per_second(task.speed), style="progress.data.speed")


def per_second(speed: float) -> str:
    """With two digits at least: days and trees take seconds each."""
    return f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.2g}/s"


class JobProgress:
    """One job's lines. `note(text)` names what is being done, `advance(text, done, total)` moves the bar; without a
    total it is a note.

    Without a bar, a piece of work that goes on for EVERY seconds says again how far it is and what remains; one that
    nobody can count, such as a query of an engine, says after each SILENCE seconds how long it has gone on.
    """

    def __init__(
        self, console: Console, name: str, bar: Progress | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console, self._name, self._bar, self._clock = console, name, bar, clock
        self._task: TaskID | None = bar.add_task(name, total=None) if bar else None
        self._last, self._began, self._told = "", 0.0, 0.0

    def note(self, text: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.reset(self._task, description=f"{self._name}: {text}")
            self._bar.tasks[0].total = None
        elif text != self._last:
            self._began = self._told = self._clock()
            self._line(text)
        self._last = text

    def advance(self, text: str, done: int, total: int) -> None:
        if total <= 0:
            self.note(text)
        elif self._bar is not None and self._task is not None:
            if text != self._last:
                self._bar.reset(self._task)
            self._bar.update(self._task, description=f"{self._name}: {text}", completed=done, total=total)
        elif text != self._last:
            self._began = self._told = self._clock()
            self._line(text)
        elif self._clock() - self._told >= EVERY and 0 < done < total:
            self._told = self._clock()
            spent = self._told - self._began
            self._line(f"{text} {done / total:.0%}, {per_second(done / spent)}, "
                       f"about {spent * (total - done) / done:.0f} s left")
        self._last = text

    def remind(self) -> None:
        """Says how long the present piece of work has gone on, where there was no line of it for SILENCE seconds."""
        if self._last and self._bar is None and self._clock() - self._told >= SILENCE:
            self._told = self._clock()
            self._line(f"{self._last}, {self._told - self._began:.0f} s so far")

    def _line(self, text: str) -> None:
        if are_json():
            log.info("%s: %s", self._name, text, extra=fields(job=self._name))
        else:
            self._console.print(f"  {self._name}: {text}", highlight=False, markup=False)


@contextmanager
def show_progress(console: Console, name: str) -> Iterator[JobProgress]:
    """Shows what the work in its block says, and in the end its seconds."""
    started = time.perf_counter()
    if are_json():
        yield from _logged(console, name)
        return
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), Rate(), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            yield from _heard(JobProgress(console, name, bar))
    else:
        console.print(f"{name} ...", highlight=False)
        yield from _heard(JobProgress(console, name, None))
    console.print(f"{name}: {time.perf_counter() - started:.1f} s", highlight=False)


def _heard(progress: JobProgress) -> Iterator[JobProgress]:
    """Reminded by a thread of its own, for the work itself may be a single call that lasts."""
    ended = threading.Event()

    def remind() -> None:
        while not ended.wait(SILENCE / 6):
            progress.remind()

    reminder = threading.Thread(target=remind, name="sluice-progress", daemon=True)
    reminder.start()
    try:
        with heard_by(progress.advance):
            yield progress
    finally:
        ended.set()
        reminder.join()


def _logged(console: Console, name: str) -> Iterator[JobProgress]:
    log_to_stderr()
    begun = time.perf_counter()
    log.info("%s begins", name, extra=fields(job=name))
    try:
        yield from _heard(JobProgress(console, name, None))
    except BaseException as error:
        log.error("%s failed: %s", name, error, extra=fields(job=name, seconds=round(time.perf_counter() - begun, 3)))
        raise
    log.info("%s is done", name, extra=fields(job=name, seconds=round(time.perf_counter() - begun, 3)))
