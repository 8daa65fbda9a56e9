"""A host whose clock a test sets, and the counters of its items."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from serving.bundle.loaded_bundle import LoadedBundle
from serving.item_counters.counter_follower import CounterFollower
from serving.request.request_features import RequestFeatures
from tests.serving.counted_items import WINDOW
from tests.serving.recorded_events import SECOND, SetClock, recorded_features, shown_event, store_at

FEATURES = recorded_features()


class Host:
    """A store with a clock that a test sets, of which a minute has passed, and a follower of the bundle's items."""

    def __init__(self, bundle: LoadedBundle, folder: Path) -> None:
        self.clock, self.bundle, self.folder, self.shown = SetClock(), bundle, folder, 0
        self.store = store_at(folder, self.clock)
        self.clock.now += WINDOW * SECOND
        self.follower = self.followed()

    def close(self) -> None:
        self.follower.close()
        self.store.close()

    def followed(self) -> CounterFollower:
        return CounterFollower(self.bundle, FEATURES, lambda: store_at(self.folder, self.clock), self.clock)

    def show(self, item: str, times: int = 1) -> None:
        names = [str(self.shown + number) for number in range(times)]
        self.store.record([[shown_event(name, self.clock.now, item=item) for name in names]])
        self.shown += times
        self.clock.now += SECOND

    def counter(self, item: str, follower: CounterFollower | None = None) -> float:
        """As a request reads it."""
        live = (follower or self.follower).columns
        inputs = RequestFeatures(replace(self.bundle, live=live))
        found = inputs.candidate_inputs(np.array([self.bundle.items.row(item)]), inputs.missing_request.ids)
        return float(found.dense[0, 0] * 2 + 4)  # mean 4, std 2

    def catch_up(self, follower: CounterFollower | None = None) -> None:
        (follower or self.follower).catch_up(60)
