"""When a worker's counters look for events again, and for how long they wait for a lull of requests.

    in step     every LOOK_SECONDS; PATIENCE_SECONDS at most for a lull
    behind      REST times the CPU that the last look took; so long at most for a lull, which is rest as well

A look and its rest take 1 + REST times the look's CPU: never more than 1 / (1 + REST) of a core, and behind as much as
that even where requests leave no lull.
"""

from __future__ import annotations

LOOK_SECONDS, PATIENCE_SECONDS, REST = 0.1, 0.2, 3.0


class Pace:
    """Seconds until the next look: `rest` first, then `patience` at most."""

    def __init__(self) -> None:
        self.rest, self.patience = LOOK_SECONDS, PATIENCE_SECONDS

    def looked(self, waited: float, spent: float, behind: bool) -> None:
        """A look has waited for a lull and then spent CPU, in seconds; `behind`: there is more to read."""
        owed = REST * spent
        if behind:
            self.rest, self.patience = max(owed - waited, 0.0), min(owed, PATIENCE_SECONDS)
        else:
            self.rest, self.patience = max(owed, LOOK_SECONDS), PATIENCE_SECONDS
