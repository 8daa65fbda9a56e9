"""Which moment of an event counts for what: the one definition of counters, rates and histories, offline and online.

All times are whole microseconds since 1970, UTC. Of an impression shown at `at` and known at `known`, and of its click:

    entered  max(at + 1, known)              it counts as shown
    closed   max(entered, at + W_label)      it counts as decided: the denominator of a rate
    learned  max(entered, label time)        its click is known: histories
    counted  max(closed, learned)            its click counts in a rate

A measure of a window W counts the impressions whose event has entered by t and that are younger than W:

    measure(t) = #{ entry <= t, at + W > t, entry < at + W }
    count      = shown
    rate       = (clicked + prior * strength) / (closed + strength)

A history lists clicks by HISTORY_ORDER, the last first. The functions take anything that knows + < <= > & and the
`latest` of two: columns of an engine with its `greatest`, numbers with `max`, arrays with `numpy.maximum`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

SECOND = 1_000_000
Event = Literal["shown", "closed", "clicked"]
Latest = Callable[[Any, Any], Any]
HISTORY_ORDER = ("clicked at", "learned", "at", "row")  # of the clicks that a query knows


def entered(at: Any, known: Any, latest: Latest) -> Any:
    """From when on the impression counts as shown: never for a query of its own moment."""
    return latest(at + 1, known)


def closed(at: Any, entered_: Any, label_window: int, latest: Latest) -> Any:
    """From when on it counts as decided; `label_window` in seconds."""
    return latest(entered_, at + label_window * SECOND)


def learned(entered_: Any, label_time: Any, latest: Latest) -> Any:
    """From when on its click is known."""
    return latest(entered_, label_time)


def counted(closed_: Any, learned_: Any, latest: Latest) -> Any:
    """From when on its click counts in a rate."""
    return latest(closed_, learned_)


def clicks_it(click_at: Any, at: Any, closes: Any) -> Any:
    """Whether a click of that moment is of the impression; `closes` is at + label window. Of several the one known
    first is taken, of several known at once the earliest."""
    return (click_at >= at) & (click_at <= closes)


class Measure(NamedTuple):
    """How many impressions have had this event and are younger than `window` seconds (None: of any age)."""

    event: Event
    window: int | None

    @property
    def column(self) -> str:
        return f"_{self.event}_{'all' if self.window is None else self.window}"

    @property
    def exit(self) -> str:
        """The column of the moment at which the impression leaves."""
        return f"_exit_{self.window}"

    def leaves(self, at: Any) -> Any:
        """When an impression of that moment is too old. There is a window."""
        assert self.window is not None
        return at + self.window * SECOND

    def ever(self, at: Any, entry: Any) -> Any:
        """Whether an impression whose event enters then counts at any time. There is a window."""
        return entry < self.leaves(at)

    def counts(self, at: Any, entry: Any, moment: Any) -> Any:
        """Whether it counts at `moment`."""
        if self.window is None:
            return entry <= moment
        return self.ever(at, entry) & (entry <= moment) & (self.leaves(at) > moment)


def measures(statistic: str, window: int) -> tuple[Measure, ...]:
    """What a statistic of a counter is made of."""
    if statistic == "count":
        return (Measure("shown", window),)
    return (Measure("closed", window), Measure("clicked", window))


def statistic_of(statistic: str, values: tuple[Any, ...], prior: float, strength: float) -> Any:
    """From the values of its measures, as numbers of floating point."""
    if statistic == "count":
        return values[0]
    decided, clicked = values
    return (clicked + prior * strength) / (decided + strength)
