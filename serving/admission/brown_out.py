"""How much simpler a tenant's answers are while its queue stands: simpler answers for many, not whole ones for few.

    level     up by one                                                         down by one
    0 ▶ 1     when the queue stands (serving/admission/standing_queue.py)       after REST without one that stands
    1 ▶ 2     while more than REFUSED[1] of its calls are refused all the same  after REST without one that stands
    2 ▶ 3     while more than REFUSED[2] are                                    when fewer than EASED are, or as above

Looked at every STEP, and LOOKS in a row have to say so of refusals: a queue that has just been told to move faster has
what waits in it to get over first. What an answer does without at a level is the run's own business
(serving/stages/request_run.py): the deepest says hardly more than a refusal, so it is for when most would hear nothing
else. What comes to an empty queue is answered whole, unless the queue stands behind it by its turn: an overload that
is mended by a few simpler answers gets a few. After Klein et al., "Brownout", 2014.
"""

from __future__ import annotations

STEP, REST, LOOKS = 0.2, 2.0, 2  # seconds, seconds, times
REFUSED = (0.0, 0.1, 0.75)  # share of the calls, by level
DEEPEST, EASED = 3, 0.5


class BrownOut:
    """Of one tenant, from when its queue stood first. `now` are seconds of any clock."""

    def __init__(self, now: float) -> None:
        self.level = 0
        self._looked = self._changed = self._stood = now
        self._refused = self._admitted = self._too_many = 0

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
            if self.level == 0:
                self._change(1, now)
            elif now - self._looked >= STEP:
                self._look(now)
        elif (rests := int((now - max(self._stood, self._changed)) / REST)) > 0:
            self._change(max(self.level - rests, 0), now)
        return self.level

    def _look(self, now: float) -> None:
        share = self._refused / max(self._refused + self._admitted, 1)
        self._looked, self._refused, self._admitted = now, 0, 0
        if self.level == DEEPEST:
            if share < EASED:
                self._change(DEEPEST - 1, now)
            return
        self._too_many = self._too_many + 1 if share > REFUSED[self.level] else 0
        if self._too_many == LOOKS:
            self._change(self.level + 1, now)

    def _change(self, level: int, now: float) -> None:
        self.level, self._looked, self._changed = level, now, now
        self._refused = self._admitted = self._too_many = 0
