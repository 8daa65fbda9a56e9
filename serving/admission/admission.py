"""Who may wait for the funnel, and who is next.

    refused at entry    the queue is full, or what is ahead would eat the time that the request has; while the tenant's
                        queue stands (serving/admission/standing_queue.py) also what would wait longer than tolerated
    next                tenants take turns by what their requests take (serving/admission/tenant_turns.py); within a
                        tenant first come first served
    answered simpler    what is next of a tenant whose queue stands, unless all are to be whole or refused
                        (serving/admission/brown_out.py)
    refused later       waited longer than the age limit, or too late for any answer when the turn comes

A full queue makes room for a tenant with less than its share by dropping the newest of the one with the most. Knows
neither gRPC nor threads; callers hold the lock.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from contracts.errors import SluiceError
from serving.admission.brown_out import BrownOut
from serving.admission.standing_queue import StandingQueue, tolerated
from serving.admission.tenant_turns import TenantTurns


class Overloaded(SluiceError):
    """The server has more to do than it can; the request may be sent again later, or elsewhere."""


@dataclass(eq=False)
class Waiting:
    """`remaining` tells the seconds of work it has left, `least` those without which there is no answer to it; `refuse`
    is called when it has to go after all. `level` says when its turn comes how much simpler than asked its answer has
    to be, 0 for not at all; `first`: it came to an empty queue."""

    tenant: str
    remaining: Callable[[], float]
    refuse: Callable[[SluiceError], None]
    least: float = 0.0
    since: float = field(default_factory=time.monotonic)
    level: int = 0
    first: bool = False


class Admission:
    """At most `most` wait, each at most `oldest` seconds. `shares` are weights by tenant, 1 where not named; where none
    `degrades`, answers are whole or there are none."""

    def __init__(
        self, most: int, oldest: float, shares: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic, degrades: bool = True,
    ) -> None:
        self._most, self._oldest, self._turns, self._clock = most, oldest, TenantTurns(shares or {}), clock
        self._degrades = degrades
        self._queues: dict[str, deque[Waiting]] = {}
        self._standing: dict[str, StandingQueue] = {}  # of those that wait
        self._brown_outs: dict[str, BrownOut] = {}  # of those whose queue has stood lately
        self.waiting = 0

    @property
    def age(self) -> float:
        """Seconds that the oldest has waited."""
        return max((self._clock() - queue[0].since for queue in self._queues.values()), default=0.0)

    def enter(self, one: Waiting, service: float) -> None:
        """`service` seconds pass per request of a tenant of whom nothing is known. Raises Overloaded."""
        self.expire()
        if why := self.refusal(one.tenant, one.remaining(), one.least, service):
            raise Overloaded(why)
        if self.waiting >= self._most:
            self._make_room(one.tenant)
        if not self._queues.get(one.tenant):
            self._queues[one.tenant], self._standing[one.tenant], one.first = deque(), StandingQueue(), True
        self._queues[one.tenant].append(one)
        self._turns.came(one.tenant)
        self.waiting += 1
        if one.tenant in self._brown_outs:
            self._brown_outs[one.tenant].admitted()

    def refusal(self, tenant: str, remaining: float, least: float, service: float) -> str:
        """Why a request with so many seconds `remaining` may not wait, or would in vain; "" where it may. One that has
        less than its least, whatever waits, is no sign of how many could be answered."""
        why = self._why_not(tenant, remaining, least, service)
        if why and remaining > least and tenant in self._brown_outs:
            self._brown_outs[tenant].refused()
        return why

    def _why_not(self, tenant: str, remaining: float, least: float, service: float) -> str:
        ahead = self._turns.ahead(tenant, service)
        if ahead > tolerated(remaining) and tenant in self._standing and self._standing[tenant].stands:
            return (f"more comes than can be answered, and {1000 * ahead:.0f} ms of it wait; send it again later or "
                    "elsewhere")
        if ahead > min(remaining - least, self._oldest):
            return (f"the queue alone takes {1000 * ahead:.0f} ms, more than the request has; send it again later or "
                    "elsewhere, or with more time")
        if self.waiting >= self._most and self._greediest(tenant) is None:
            return f"{self.waiting} requests wait, as many as may (serve.max_queue); send it again later or elsewhere"
        return ""

    def next(self) -> Waiting | None:
        """Whose turn it is; those that have too little time left are refused on the way."""
        self.expire()
        while self.waiting:
            tenant, now = self._turns.next(), self._clock()
            one = self._queues[tenant].popleft()
            self._standing[tenant].taken(now - one.since, one.remaining(), now)
            stands, level = self._standing[tenant].stands, self._level(tenant, now)
            one.level = level if stands or not one.first else 0
            self._turns.taken(tenant)
            self._gone(tenant)
            if one.remaining() > one.least:
                return one
            one.refuse(Overloaded("the queue has eaten the time of the request; send it again with more"))
        return None

    def worked(self, one: Waiting, seconds: float, service: float = 0.0) -> None:
        """It has held the funnel for so long, which its tenant has had of its turns; requests take `service` seconds
        in the mean, 0 where nobody knows."""
        self._turns.worked(one.tenant, seconds, service)

    def rested(self) -> None:
        """Nothing has waited, nor run: what tenants had of their turns is no matter any more."""
        self._turns.rested()

    def leave(self, one: Waiting) -> None:
        """Of its own accord; nothing happens where it does not wait."""
        queue = self._queues.get(one.tenant)
        if queue and one in queue:
            queue.remove(one)
            self._left(one.tenant)

    def expire(self) -> None:
        """Refuses those that have waited too long."""
        limit = self._clock() - self._oldest
        for tenant in list(self._queues):
            while self._queues.get(tenant) and self._queues[tenant][0].since < limit:
                one = self._queues[tenant].popleft()
                self._left(tenant)
                one.refuse(Overloaded("it has waited longer than requests may; send it again later or elsewhere"))

    def _level(self, tenant: str, now: float) -> int:
        stands = self._standing[tenant].stands
        if tenant not in self._brown_outs:
            if not stands or not self._degrades:
                return 0
            self._brown_outs = {name: one for name, one in self._brown_outs.items() if not one.over(now)}
            self._brown_outs[tenant] = BrownOut(now)
        return self._brown_outs[tenant].taken(stands, now)

    def _greediest(self, tenant: str) -> str | None:
        """Who has to give up a place for a newcomer of `tenant`; None where nobody has more than its share."""
        def weight(name: str) -> float:
            return len(self._queues[name]) / self._turns.share(name)

        largest = max(self._queues, key=weight)
        own = (len(self._queues.get(tenant, ())) + 1) / self._turns.share(tenant)
        return None if largest == tenant or weight(largest) <= own else largest

    def _make_room(self, tenant: str) -> None:
        largest = self._greediest(tenant)
        assert largest is not None  # or the newcomer had been refused
        dropped = self._queues[largest].pop()
        self._left(largest)
        dropped.refuse(Overloaded("others have waited for their share; send it again later or elsewhere"))

    def _left(self, tenant: str) -> None:
        self._turns.left(tenant)
        self._gone(tenant)

    def _gone(self, tenant: str) -> None:
        self.waiting -= 1
        if not self._queues[tenant]:
            del self._queues[tenant], self._standing[tenant]
