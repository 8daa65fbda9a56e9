"""A trouble that lasts is a line of the log when it begins and one when it is over: a full disk fails every batch."""

from __future__ import annotations

import logging

log = logging.getLogger("sluice.serving")


class Trouble:
    """`begun` is logged as an error with the failure in place of its %s, `over` when there is none any more."""

    def __init__(self, begun: str, over: str) -> None:
        self._begun, self._over, self._lasts = begun, over, False

    def say(self, failure: str) -> None:
        """What has failed just now, "" where nothing has."""
        if failure and not self._lasts:
            log.error(self._begun, failure)
        elif self._lasts and not failure:
            log.info(self._over)
        self._lasts = bool(failure)
