"""Whether a store may be asked.

    closed ── LIMIT failures in a row, or a failed look ──▶ open ── the next look succeeds ──▶ closed

Looks come from one task of the process (serving/users/user_reader.py), whatever the load: a store that comes back is
met by one question a process, and by requests only after that.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

LIMIT = 3
UNASKED = "the store of users has not been asked yet"


class StoreState(NamedTuple):
    """`published` None where no tables are read; `failures` since the process began."""

    published: datetime | None
    failures: int
    is_down: bool


class CircuitBreaker:
    """`cause` says why nobody asks, "" while everybody may; `failures` counts questions without an answer. It begins
    open: the first look closes it."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit, self._in_a_row = limit, 0
        self.cause, self.failures = UNASKED, 0

    def failed(self, cause: str) -> None:
        """A question of a request had no answer in time."""
        self.failures += 1
        self._in_a_row += 1
        if self._in_a_row >= self._limit and not self.cause:
            self.cause = cause

    def answered(self) -> None:
        """A question of a request had one; one that comes late closes nothing."""
        self._in_a_row = 0

    def looked(self, cause: str) -> None:
        """A look has ended; `cause` "" where the store can be read."""
        self.cause = cause
        self._in_a_row = 0
