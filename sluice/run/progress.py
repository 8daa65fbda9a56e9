"""What long work shows: a moving bar on a terminal, plain lines elsewhere (logs, CI, schedulers)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class JobProgress:
    """One job's lines. `note(text)` names what is being done, `advance(text, done, total)` moves the bar."""

    def __init__(self, console: Console, name: str, bar: Progress | None) -> None:
        self._console, self._name, self._bar = console, name, bar
        self._task: TaskID | None = bar.add_task(name, total=None) if bar else None
        self._last = ""

    def note(self, text: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=f"{self._name}: {text}", total=None)
        elif text != self._last:
            self._console.print(f"  {self._name}: {text}", highlight=False)
        self._last = text

    def advance(self, text: str, done: int, total: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=f"{self._name}: {text}", completed=done, total=total)
        elif text != self._last:
            self._console.print(f"  {self._name}: {text}", highlight=False)
            self._last = text


@contextmanager
def show_progress(console: Console, name: str) -> Iterator[JobProgress]:
    """Shows what the work in its block says, and in the end its seconds."""
    started = time.perf_counter()
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            yield JobProgress(console, name, bar)
    else:
        console.print(f"{name} ...", highlight=False)
        yield JobProgress(console, name, None)
    console.print(f"{name}: {time.perf_counter() - started:.1f} s", highlight=False)
