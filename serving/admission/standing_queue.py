"""Does a queue stand? A burst passes; a queue that stays means that more comes than can be answered.

    tolerated    half of a request's time in the queue, and LONGEST at most
    stands       once those taken have waited longer than that for a whole INTERVAL, until nobody waits any more

Nichols and Jacobson, "Controlling Queue Delay", 2012, tell a good queue from a bad one so. What follows from it is the
admission's: it lets in no more than what need not wait longer, so that all that came in are answered in the order in
which they came, and the others hear at once that they are not.
"""

from __future__ import annotations

SPENT, LONGEST, INTERVAL = 0.5, 0.2, 0.5  # share of a request's time; seconds; seconds


def tolerated(time: float) -> float:
    """Seconds of waiting, of a request that has so many seconds."""
    return min(SPENT * time, LONGEST)


class StandingQueue:
    """Of one tenant, as long as somebody waits; an empty queue begins anew."""

    def __init__(self) -> None:
        self._above: float | None = None
        self.stands = False

    def taken(self, waited: float, left: float, now: float) -> None:
        """One that has `waited` so long, and has so many seconds `left`, leaves the head of the queue."""
        if waited <= tolerated(waited + left):
            self._above = None
        elif self._above is None:
            self._above = now
        self.stands = self.stands or (self._above is not None and now - self._above >= INTERVAL)
