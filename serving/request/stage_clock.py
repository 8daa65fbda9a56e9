"""What stages take, as running quantiles, and whether one may still begin.

    estimate(stage) = max(q of the last WINDOW times, the smaller of the last two)

The second term reacts to a stage that has become slow after two requests, and a single hiccup moves nothing. A stage
that is left out because of its estimate gives no new times: after `TRY_AGAIN_SECONDS` without one it may be tried
again, once, which finds out when it has recovered.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from serving.request.deadline import Deadline

WINDOW, QUANTILE, REFRESH = 64, 0.9, 8
TRY_AGAIN_SECONDS = {True: 1.0, False: 30.0}  # watched: another one answers when the try takes too long


class RunningQuantile:
    """`value` of the last WINDOW seconds told, 0 before; refreshed every REFRESH of them, or at once where the stage
    slows down."""

    def __init__(self, quantile: float = QUANTILE) -> None:
        self._times: deque[float] = deque(maxlen=WINDOW)
        self._quantile, self._of_window, self._last, self._count = quantile, 0.0, 0.0, 0
        self.value = 0.0
        self.told_at = time.monotonic()

    def tell(self, seconds: float) -> None:
        self._times.append(seconds)
        self._count += 1
        self.told_at = time.monotonic()
        if self._count % REFRESH == 1 or self._count < REFRESH:
            ordered = sorted(self._times)
            self._of_window = ordered[min(len(ordered) - 1, int(self._quantile * len(ordered)))]
        recent = seconds if seconds < self._last else self._last
        self.value = recent if recent > self._of_window else self._of_window
        self._last = seconds


class StageClock:
    """Of one funnel. `order` names the stages that have to follow one another; `now` is by what they are timed."""

    def __init__(self, order: Sequence[str]) -> None:
        self._order, self.now = tuple(order), time.perf_counter
        self.forget()

    @contextmanager
    def timed_by(self, now: Callable[[], float]) -> Iterator[None]:
        """In its block, by another clock."""
        before, self.now = self.now, now
        try:
            yield
        finally:
            self.now = before

    def forget(self) -> None:
        """Nothing has been told."""
        self._stages = {name: RunningQuantile() for name in self._order}

    def tell(self, stage: str, seconds: float) -> None:
        self._stages[stage].tell(seconds)

    def estimate(self, *stages: str) -> float:
        """Seconds that these stages take together."""
        seconds = 0.0
        for stage in stages:
            seconds += self._stages[stage].value
        return seconds

    def fits(self, stage: str, after: float, deadline: Deadline) -> bool:
        """Is there time for the stage and for the seconds that have to come `after` it?"""
        left = deadline.remaining() - after
        known = self._stages[stage]
        if known.value <= left:
            return True
        waited = time.monotonic() - known.told_at
        if left <= 0 or waited < TRY_AGAIN_SECONDS[deadline.watched]:
            return False
        known.told_at = time.monotonic()  # one try, not one per request
        return True
