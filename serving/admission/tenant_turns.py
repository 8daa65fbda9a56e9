"""Whose turn it is: tenants that wait get the same time of the funnel, each times its share, whatever one request of
theirs takes.

    work     seconds that a tenant's requests have held the funnel, over its share
    next     the tenant with the least work of those that wait
    law      of two that always wait, the works drift apart by no more than one request, over its tenant's share
    least    the work of the tenant that had the last turn: who comes again begins no lower, so that what it left unused
             is gone, and no lower than its own, so that what it had before counts
    level    the mean work of those at it, where a name begins that is not known: names that are new with every request
             would keep the least where it is, and go first for ever

    mean     of what a tenant's requests take, begun at what those of all take: one that the machine held up does not
             stand for those that come after it

A request is charged when it ends, with what it took. Knows neither queues nor clocks. After Goyal, Vin and Cheng,
"Start-time Fair Queuing", 1996.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SMOOTHING = 0.05  # of the mean time of a tenant's requests, once it has had many
BEGUN = 4  # requests that the beginning of that mean counts for


@dataclass(eq=False)
class Account:
    """Of one tenant; `mean` seconds of its requests of which so many have `ended`, `waiting` of them wait."""

    share: float
    work: float
    mean: float = 0.0
    ended: int = 0
    waiting: int = 0

    def took(self, seconds: float, usual: float) -> None:
        """One has ended; those of all take `usual` seconds, 0 where nobody knows."""
        self.ended += 1
        if self.ended == 1:
            self.mean = usual or seconds
        self.mean += max(SMOOTHING, 1 / (BEGUN + self.ended)) * (seconds - self.mean)


class TenantTurns:
    """`shares` are weights by tenant, 1 where not named."""

    def __init__(self, shares: Mapping[str, float]) -> None:
        self._shares, self._least, self._level = dict(shares), 0.0, 0.0
        self._accounts: dict[str, Account] = {}

    @property
    def known(self) -> set[str]:
        """Tenants that wait, or have had more than the least."""
        return set(self._accounts)

    def share(self, tenant: str) -> float:
        """Its weight."""
        return self._shares.get(tenant, 1.0)

    def came(self, tenant: str) -> None:
        """A request of the tenant's waits."""
        account = self._accounts.setdefault(tenant, self._account(tenant))
        account.work = max(account.work, self._least)
        account.waiting += 1

    def next(self) -> str:
        """The tenant whose turn it is; one waits at least."""
        return min((name for name, one in self._accounts.items() if one.waiting),
                   key=lambda name: self._accounts[name].work)

    def taken(self, tenant: str) -> None:
        """One of its has its turn, and is charged when it ends."""
        account = self._accounts[tenant]
        account.waiting -= 1
        self._least = max(self._least, account.work)

    def left(self, tenant: str) -> None:
        """One of its waits no more, and has had no turn."""
        account = self._accounts[tenant]
        account.waiting -= 1
        if not account.waiting and account.work <= self._least:
            del self._accounts[tenant]

    def worked(self, tenant: str, seconds: float, usual: float = 0.0) -> None:
        """So long one of its requests has held the funnel, where those of all tenants take `usual` seconds."""
        account = self._accounts.setdefault(tenant, self._account(tenant))
        account.work += seconds / account.share
        account.took(seconds, usual)
        at_it = [one for one in self._accounts.values() if one.waiting or one is account]
        works = [one.work for one in at_it]
        risen = self._level + seconds / sum(one.share for one in at_it)
        self._level = min(max(risen, min(works)), max(works))
        self._forget()

    def rested(self) -> None:
        """Nothing waits and nothing runs: nobody owes anybody anything."""
        self._accounts.clear()

    def ahead(self, tenant: str, seconds: float) -> float:
        """Seconds of work before a newcomer's turn: of its own tenant's, and of others that have their turn before.
        A request takes `seconds` where none of its tenant's has ended."""
        own = self._accounts.get(tenant) or self._account(tenant)
        before = own.waiting * (own.mean or seconds)
        start = max(own.work, self._least) + before / own.share
        for other in self._accounts.values():
            if other is not own and other.waiting and other.work <= start:
                each = other.mean or seconds
                turns = 1 + (start - other.work) * other.share // each if each else other.waiting
                before += each * min(other.waiting, turns)
        return before

    def _account(self, tenant: str) -> Account:
        """Of one that is not known."""
        return Account(self.share(tenant), max(self._level, self._least))

    def _forget(self) -> None:
        gone = [name for name, one in self._accounts.items() if not one.waiting and one.work <= self._least]
        for name in gone:
            del self._accounts[name]
