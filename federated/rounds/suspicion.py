"""Who of a group spoils its sums: found by leaving some out, since masks hide whose words are wrong.

    a sum of U is no sum        suspects: U, or those of them that were suspected before; who was left out is none
    a sum of U is one           nobody of U is a suspect
    one is left                 it is left out from now on

After a spoilt attempt the next of the round leaves out up to a third of the group, all of them suspects; a new round
leaves out half of them, to know more of them. One bad client of n costs a first round four attempts at most, each
later one two, until log2(n / 3) rounds later it is known. It is a suspicion and no proof: a client that lies only where
another is there may have that one left out in its place.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field


@dataclass
class Suspicion:
    """`least`: of a sum."""

    least: int
    suspects: set[int] = field(default_factory=set)
    found: set[int] = field(default_factory=set)
    left_out: set[int] = field(default_factory=set)
    _spoilt: bool = False

    @property
    def not_asked(self) -> tuple[int, ...]:
        """Sorted: those of the last group that were left out, and all that were found."""
        return tuple(sorted(self.left_out | self.found))

    def begin_round(self) -> None:
        """What follows is the first attempt of a round."""
        self._spoilt = False

    def without(self, group: Sequence[int], drawn: random.Random, most: int | None = None) -> list[int]:
        """Who of the group is asked; `left_out` are the others, so many at `most` (None: a third)."""
        among = [client for client in group if client in self.suspects]
        if len(among) == 1:
            self.found |= set(among)
        asked = [client for client in group if client not in self.found]
        among = [client for client in among if client not in self.found]
        third = -(-len(asked) // 3)
        most = max(0, min(third if most is None else most, third, len(asked) - self.least))
        wanted = len(among) if self._spoilt else -(-len(among) // 2)
        self.left_out = set(drawn.sample(among, min(most, wanted)))
        return [client for client in asked if client not in self.left_out]

    def spoilt(self, clients: Collection[int]) -> None:
        """The sum of these clients was none."""
        self.suspects -= self.left_out
        if not self.suspects & set(clients):
            self.suspects |= set(clients)
        self._spoilt = True

    def fine(self, clients: Collection[int]) -> None:
        """The sum of these clients was one."""
        self.suspects -= set(clients)
