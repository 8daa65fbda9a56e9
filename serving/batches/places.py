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
    to be read", and the `cure`."""

    def __init__(self, most: int, what: str, cure: str, share: float = SHARE) -> None:
        self._most, self._each = most, max(1, round(share * most))
        self._what, self._cure, self._held = what, cure, Counter[str]()

    @property
    def taken(self) -> int:
        """By everybody."""
        return self._held.total()

    def take(self, who: str) -> None:
        """Raises NoPlace."""
        if self.taken >= self._most:
            raise NoPlace(f"{self.taken} {self._what}, as many as may; {self._cure}")
        if self._held[who] >= self._each:
            raise NoPlace(f"{self._held[who]} {self._what} of this caller alone, as many as may of one; {self._cure}")
        self._held[who] += 1

    def leave(self, who: str) -> None:
        """A place that it has taken."""
        self._held[who] -= 1
        if not self._held[who]:
            del self._held[who]
