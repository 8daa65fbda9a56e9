"""The time one request has left. Stages ask it before and between chunks of work; nothing else stops a running stage.

    arrival ─────────── work ───────────▶ | ── reserve ──▶ end      what the caller has
                                          expired                    the answer is written and sent

The reserve is for what comes after the funnel: serialisation, the way back, the caller's own wake-up.
"""

from __future__ import annotations

import time

from contracts.errors import SluiceError


class DeadlineExpired(SluiceError):
    """Nothing could be answered in time; a request with candidates in hand is answered from what it has instead, unless
    it wants all or nothing."""


class Cancelled(SluiceError):
    """The caller has gone, or has been answered otherwise: the rest of the work is nobody's."""


class Deadline:
    """`seconds` from now, by the monotonic clock, of which the last `reserve` are not for work; None never expires.

    `watched` says that somebody answers from what is there when a stage overruns, so that trying costs the caller
    nothing.
    """

    def __init__(self, seconds: float | None, reserve: float = 0.0, watched: bool = False) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds - reserve
        self.watched, self.cancelled = watched, False

    def remaining(self) -> float:
        """Seconds of work left, negative once the reserve is being used up."""
        return float("inf") if self._end is None else self._end - time.monotonic()

    @property
    def expired(self) -> bool:
        return self.remaining() <= 0.0

    def before(self, seconds: float, expected: float = 0.0) -> StageDeadline:
        """The same, for a stage that is expected to take so long and has to leave `seconds` to those behind it."""
        return StageDeadline(self, seconds, expected)

    @property
    def roomy(self) -> bool:
        """Is there more time than asking between chunks could save?"""
        return self._end is None

    def cancel(self) -> None:
        """Stops the work at its next question."""
        self.cancelled = True

    def checkpoint(self) -> None:
        """Raises Cancelled where nobody waits for the work any more."""
        if self.cancelled:
            raise Cancelled("the caller has gone")


class StageDeadline(Deadline):
    """A request's deadline as one of its stages has to keep it."""

    def __init__(self, whole: Deadline, after: float, expected: float) -> None:
        self._whole, self._after, self._expected = whole, after, expected
        self.watched = whole.watched

    def remaining(self) -> float:
        return self._whole.remaining() - self._after

    @property
    def roomy(self) -> bool:
        """There is time for twice what is expected: the stage need not ask again."""
        return self.remaining() >= 2 * self._expected

    def checkpoint(self) -> None:
        self._whole.checkpoint()
