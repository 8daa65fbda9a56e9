"""What the balancer has refused, of which no worker knows: told to the metrics, and to the log once a minute."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from serving.metrics.metrics_folder import is_on

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

LOG_SECONDS = 60.0
log = logging.getLogger("sluice.serving")


class Refusals:
    """Counted in `registry`, None for nowhere."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._unsaid, self._log_next = 0, 0.0
        self._counter = None
        if registry is not None:
            from prometheus_client import Counter

            self._counter = Counter("sluice_balancer_refused_total", "Calls that the balancer has refused, of which no "
                                    "worker knows.", registry=registry)

    def more(self, refused: int, now: float) -> None:
        """So many more; `now` in seconds of any clock."""
        self._unsaid += refused
        if self._counter is not None:
            self._counter.inc(refused)
        if self._unsaid and now >= self._log_next:
            log.warning("the balancer has refused %d calls: more comes than can be answered in time", self._unsaid)
            self._unsaid, self._log_next = 0, now + LOG_SECONDS


def refusals_of_process() -> Refusals:
    """Counted where this process counts."""
    if not is_on():
        return Refusals()
    from prometheus_client import CollectorRegistry  # not before: it looks at the environment once

    return Refusals(CollectorRegistry())
