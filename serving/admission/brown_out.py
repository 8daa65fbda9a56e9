"""How much simpler a tenant's answers are while its queue stands: simpler answers for many, not whole ones for few.

    level     up by one                                                         down by one
    0 ▶ 1     when the queue stands (serving/admission/standing_queue.py)       after REST without one that stands
    1 ▶ 2     while more than REFUSED[1] of its calls are refused all the same  after REST without one that stands
    2 ▶ 3     while more than REFUSED[2] are                                    when fewer than EASED are, or as above

Looked at every STEP. What an answer does without at a level is the run's own business
(serving/stages/request_run.py): the deepest says hardly more than a refusal, so it is for when most would hear nothing
else. What comes to an empty queue never asks, and is answered whole: an overload that is mended by a few simpler
answers gets a few. After Klein et al., "Brownout", 2014.
"""

from __future__ import annotations

STEP, REST = 0.25, 2.0  # seconds
REFUSED = (0.0, 0.05, 0.75)  # share of the calls, by level
DEEPEST, EASED = 3, 0.5


class BrownOut:
    """Of one tenant, from when its queue stood first. `now` are seconds of any clock."""

    def __init__(self, now: float) -> None:
        self.level = 0
        self._changed = self._stood = now
        self._refused = self._admitted = 0

    def refused(self) -> None:
        """A call of the tenant's."""
        self._refused += 1

    def admitted(self) -> None:
        self._admitted += 1

    def over(self, now: float) -> bool:
        """It has not stood for so long that no level is left."""
        return now - self._stood >= DEEPEST * REST

    def taken(self, stands: bool, now: float) -> int:
        """The level for a request that leaves the queue."""
        if stands:
            self._stood = now
            if self.level == 0 or now - self._changed >= STEP:
                self._change(self._next(), now)
        elif (rests := int((now - max(self._stood, self._changed)) / REST)) > 0:
            self._change(max(self.level - rests, 0), now)
        return self.level

    def _next(self) -> int:
        share = self._refused / max(self._refused + self._admitted, 1)
        if self.level == DEEPEST:
            return DEEPEST - (share < EASED)
        return self.level + (self.level == 0 or share > REFUSED[self.level])

    def _change(self, level: int, now: float) -> None:
        self.level, self._changed = level, now
        self._refused = self._admitted = 0
