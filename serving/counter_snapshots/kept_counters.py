"""Event-fresh counters of items that outlive their process: at a start they go on from the newest snapshot that fits,
and read what came after it; without one they read all events of the longest window.

What does not fit is told in one line and passed over: it counts by other definitions, is of another log or of one that
was cut, or is damaged. What a start knows is so the same to the last bit with a snapshot and without.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from contracts.shown import short
from serving.bundle.loaded_bundle import LoadedBundle
from serving.counter_snapshots.snapshot_file import opened
from serving.counter_snapshots.snapshot_folder import SnapshotFolder
from serving.counter_snapshots.snapshot_writer import CLOSE_SECONDS, SnapshotWriter
from serving.events.event_servicer import now_micros
from serving.events.event_store import EventStore
from serving.item_counters.counter_follower import CounterFollower, counters_of

log = logging.getLogger("sluice.serving")


class KeptCounters:
    """What counts, and what keeps it where it is this process's turn."""

    def __init__(self, follower: CounterFollower, folder: SnapshotFolder) -> None:
        self.follower, self._writer = follower, SnapshotWriter(follower, folder)

    def start(self) -> None:
        self.follower.start()
        self._writer.start()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Keeps what is counted, as far as that takes no longer."""
        self._writer.close(seconds)
        self.follower.close()


def take_up(follower: CounterFollower, folder: SnapshotFolder) -> Path | None:
    """Goes on from the newest snapshot that fits, which is returned; None without one."""
    kept = folder.newest_first()
    for path in kept:
        begun, why = time.monotonic(), _misfit(follower, path)
        if not why:
            log.info("the items' counters go on from %s, read in %.1f s", path, time.monotonic() - begun)
            return path
        follower.passed_over += 1
        log.warning("the items' counters do not go on from %s: %s", path, why)
    if kept:
        log.warning("the items' counters are counted anew, from all events of the longest window")
    return None


def _misfit(follower: CounterFollower, path: Path) -> str:
    """Why the follower does not go on from it; empty where it does."""
    try:
        with opened(path) as held:
            why = follower.misfit(held.standing)
            if not why:
                follower.resume(held)
    except Exception as error:  # of a damaged file numpy, zip and JSON say it each in their own way
        why = short(f"it cannot be read ({type(error).__name__}: {error})", 200)
    return why


def followed(bundle: LoadedBundle, folder: Path) -> KeptCounters | None:
    """Of the events in `folder`, caught up and not started; None where no network of the bundle reads a counter of an
    item that is event-fresh. Raises DataError where the store cannot be opened."""
    features = bundle.event_features
    if features is None or not counters_of(bundle, features):
        return None
    follower = CounterFollower(bundle, features, lambda: EventStore(folder, features, now_micros), now_micros)
    snapshots = SnapshotFolder(folder)
    take_up(follower, snapshots)
    found = KeptCounters(follower, snapshots)
    follower.catch_up()
    return found
