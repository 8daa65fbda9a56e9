"""The file of figures of a process that counts: those that it has no room for wait in memory, each by itself, and come
into the file with all that they have counted once there is room.

An error instead would be the caller's, who counts several figures one after the other: all behind the first that has no
room would be lost with it, and the library keeps a part of each histogram that it could not make.
"""

from __future__ import annotations

import logging
import time

from prometheus_client import values

from serving.metrics.held_figures import HeldFigures

AGAIN_SECONDS = 1.0  # until room is looked for again
log = logging.getLogger("sluice.serving")


class WaitingFigures(HeldFigures):
    """Raises OSError where there is no room for the file."""

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        super().__init__(filename, read_mode)
        self._waiting, self._again = dict[str, tuple[float, float]](), 0.0

    def read_value(self, key: str) -> tuple[float, float]:
        """Value and timestamp; zeros of a new one."""
        self._make_room(key)
        return self._waiting[key] if key in self._waiting else super().read_value(key)

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        self._make_room(key)
        if key in self._waiting:
            self._waiting[key] = value, timestamp
        else:
            super().write_value(key, value, timestamp)

    def _make_room(self, key: str) -> None:
        """For the figure where it is new, and for those that wait."""
        if key not in self._positions:
            self._waiting.setdefault(key, (0.0, 0.0))
        if self._waiting and time.monotonic() >= self._again:
            try:
                for one in list(self._waiting):
                    super().write_value(one, *self._waiting[one])
                    del self._waiting[one]
            except OSError as error:
                self._say(error)
                self._again = time.monotonic() + AGAIN_SECONDS
            else:
                self._again = 0.0

    def _say(self, error: OSError) -> None:
        """Once, until there has been room for all."""
        if not self._again:
            log.error("there is no room for further figures in %s (%s): what they count is shown once there is",
                      self._fname, error.strerror)


def let_figures_wait() -> None:
    """All figures of this process are held so from now on; before the first is made."""
    values.MmapedDict = WaitingFigures  # type: ignore[misc]
