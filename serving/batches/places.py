"""Places that callers share: so many for all of them, a part of these at most for one.

Without the second bound whoever comes first may take them all, and hold them.
"""

from __future__ import annotations

from collections import Counter

from contracts.errors import SluiceError

SHARE = 0.25


class NoPlace(SluiceError):
    """All are taken, or all that one caller may have."""


class Places:
    """`most` of them, of which one caller may have a `share`; a refusal says `what` has taken them, as in "batches wait
    to be read", and the `cure`. Places may be bytes: what takes more than there are is let in alone."""

    def __init__(self, most: int, what: str, cure: str, share: float = SHARE) -> None:
        self.most, self._each = most, max(1, round(share * most))
        self._what, self._cure, self._held = what, cure, Counter[str]()

    @property
    def taken(self) -> int:
        """By everybody."""
        return self._held.total()

    def take(self, who: str, size: int = 1) -> None:
        """So many at once. Raises NoPlace."""
        taken, own = self.taken, self._held.get(who, 0)
        if taken and taken + size > self.most:
            raise NoPlace(f"{taken} {self._what}, as many as may; {self._cure}")
        if own and own + size > self._each:
            raise NoPlace(f"{own} {self._what} of this caller alone, as many as may of one; {self._cure}")
        self._held[who] += size

    def leave(self, who: str, size: int = 1) -> None:
        """Places that it has taken."""
        self._held[who] -= size
        if not self._held[who]:
            del self._held[who]
