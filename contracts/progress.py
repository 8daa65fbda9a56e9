"""How long work says how far it is, to whoever listens.

    with heard_by(on_progress): ...         what work inside reports goes to on_progress(what, done, total)
    report("features", rows, all_rows)      done of total; both 0 where nobody can count what is left
    for day in counted("log", days): ...    the same, one after the other

As with a logger, work deep inside does not know who listens, and no signature between the two carries the listener.
Threads and processes that the work starts are not heard: beside it they would speak in between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

OnProgress = Callable[[str, int, int], None]
T = TypeVar("T")


def _nobody(what: str, done: int, total: int) -> None:
    pass


_LISTENER: ContextVar[OnProgress] = ContextVar("listener", default=_nobody)


@contextmanager
def heard_by(listener: OnProgress) -> Iterator[None]:
    """Within the block, in place of whoever listened before."""
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)


def report(what: str, done: int = 0, total: int = 0) -> None:
    """`done` of `total` units of `what`, whose name stays the same while it goes on."""
    _LISTENER.get()(what, done, total)


def counted(what: str, units: Collection[T]) -> Iterator[T]:
    """The units, each reported when the next one is asked for."""
    report(what, 0, len(units))
    for number, unit in enumerate(units, start=1):
        yield unit
        report(what, number, len(units))
