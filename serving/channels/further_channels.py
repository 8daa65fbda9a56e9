"""The channels of `retrieve.channels` for one request, each where it has time and does not fail."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from contracts.config.stages import Retrieve
from serving.bundle.channel import Channel
from serving.bundle.item_set import ItemSet
from serving.channels.open_items import OpenItems
from serving.request.deadline import Deadline
from serving.request.request_features import Requester
from serving.request.stage_clock import StageClock

log = logging.getLogger("sluice.serving")


class FurtherChannels:
    """Those of `retrieve.channels`, for one request."""

    def __init__(
        self, channels: Sequence[Channel], settings: Retrieve, clock: StageClock, deadline: Deadline
    ) -> None:
        self._channels, self._settings, self._clock, self._deadline = channels, settings, clock, deadline
        self.dropped: list[str] = []
        self.seconds = 0.0

    def take(
        self, items: OpenItems, requester: Requester, closed: int, allowed: ItemSet | None, by_value: bool
    ) -> dict[str, np.ndarray]:
        """New item rows per channel that had time; `closed` items at most are not open."""
        found, recent = {}, requester.recent
        for channel in self._channels:
            quota, begun = self._settings.channels[channel.name].quota or 0, self._clock.now()
            if not quota or (channel.reads_history and not len(recent)):
                continue
            if not self._clock.fits(channel.name, 0.0, self._deadline):
                self.dropped.append(f"no time for channel {channel.name}")
                continue
            try:
                best = channel.best(recent, quota + closed, allowed, by_value, requester.events)
            except Exception as error:
                log.error("channel %s failed and is left out", channel.name, exc_info=error)
                self.dropped.append(f"channel {channel.name} failed: {type(error).__name__}")
                continue
            found[channel.name] = items.take(best, quota)
            closed += len(found[channel.name])
            spent = self._clock.now() - begun
            self._clock.tell(channel.name, spent)
            self.seconds += spent
        return found
