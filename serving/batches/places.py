"""Places that callers share: so many for all of them, and for one at most a part of those that the others leave.

Without the second bound whoever comes first may take them all, and hold them; with a fixed part of all, as many callers
as there are parts. Of a part p of what others leave, the k that came first leave (1 - p)^k: who comes next finds some.
"""

from __future__ import annotations

from collections import Counter

from contracts.errors import SluiceError

SHARE = 0.25


class NoPlace(SluiceError):
    """All are taken, or all that one caller may have."""


class Places:
    """`most` of them; one caller may have a `share` of those that are not others', and one place at least. A refusal
    says `what` has taken them, as in "batches wait to be read", and the `cure`. Places may be bytes: what takes more
    than there are is let in alone."""

    def __init__(self, most: int, what: str, cure: str, share: float = SHARE) -> None:
        self.most, self._share, self.taken = most, share, 0
        self._what, self._cure, self._held = what, cure, Counter[str]()

    def take(self, who: str, size: int = 1) -> None:
        """So many at once. Raises NoPlace."""
        taken, own = self.taken, self._held.get(who, 0)
        if taken and taken + size > self.most:
            raise NoPlace(f"{taken} {self._what}, as many as may; {self._cure}")
        if own and own + size > max(1, round(self._share * (self.most - taken + own))):
            raise NoPlace(f"{own} {self._what} of this caller alone, as many as may of one; {self._cure}")
        self._held[who] += size
        self.taken += size

    def leave(self, who: str, size: int = 1) -> None:
        """Places that it has taken."""
        self._held[who] -= size
        self.taken -= size
        if not self._held[who]:
            del self._held[who]
