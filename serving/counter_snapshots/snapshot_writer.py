"""The thread that keeps what a worker has counted, in one process of the host: the others wait for its end.

    who     each worker counts for itself and all count the same, so that one is as good as any: whoever has the lock,
            which the system takes from a process that ends
    when    EVENTS are counted, or MOST_SECONDS have passed and something is counted
    cost    LEAST_SECONDS apart, and REST times as long as the last one took: 2% of a core and of the disk at most
    stop    once more, where something is counted that is not kept

So a start reads EVENTS, or what came within LEAST_SECONDS or REST times a snapshot's time, however long the log is; and
after a stop what came during it.
Counting goes on meanwhile: runs of impressions are never changed in place, so that to hold them is to list them.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from contextlib import suppress

from contracts.shown import short
from contracts.thread_name import name_thread
from serving.counter_snapshots.snapshot_file import opened
from serving.counter_snapshots.snapshot_folder import SnapshotFolder
from serving.item_counters.counter_follower import CounterFollower

LOCK = ".writing"
EVENTS, MOST_SECONDS = 100_000, 600.0  # some 0.8 s of counting
LEAST_SECONDS, REST = 20.0, 50.0
LOOK_SECONDS = 1.0  # between looks whether it is this process's turn, or time
CLOSE_SECONDS = 10.0  # that the end of a snapshot is waited for
PRIORITY = 10  # Linux's nice value: requests go first
log = logging.getLogger("sluice.serving")


def is_due(events: int, seconds: float, took: float) -> bool:
    """`events` are counted and `seconds` have passed since the last snapshot, which `took` seconds."""
    rested = seconds >= max(LEAST_SECONDS, REST * took)
    return rested and (events >= EVENTS or (events > 0 and seconds >= MOST_SECONDS))


class SnapshotWriter:
    """Of `follower`. `close` before the follower's."""

    def __init__(self, follower: CounterFollower, folder: SnapshotFolder) -> None:
        self._follower, self._folder = follower, folder
        self._seen, self._written, self._took = 0, time.monotonic(), 0.0
        self._failing, self._stop = False, threading.Event()
        self._thread = threading.Thread(target=self._wait_for_turn, name="snapshots", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Keeps what is counted and not kept, where it is this process's turn. What takes longer is left: the last one
        holds."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def write(self) -> None:
        """Now. Raises OSError, sqlite3.Error."""
        begun = time.monotonic()
        held = self._follower.holding()
        self._folder.keep(held)
        self._seen, self._written = held.standing.seen, time.monotonic()
        self._took = self._written - begun

    def _wait_for_turn(self) -> None:
        name_thread()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), PRIORITY)
        stopping = False
        while not stopping:
            stopping = self._stop.wait(LOOK_SECONDS)  # then once more: it may be nobody's turn yet
            try:
                self._write_in_turn()
            except Exception as error:  # a disk that is full: the next try may succeed
                self._failed(error)

    def _write_in_turn(self) -> None:
        self._folder.path.mkdir(parents=True, exist_ok=True)
        with (self._folder.path / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self._folder.remove_drafts()
            self._seen = self._kept()
            while not self._stop.wait(LOOK_SECONDS):
                if is_due(self._follower.seen - self._seen, time.monotonic() - self._written, self._took):
                    self.write()
                    self._failing = False
            if self._follower.seen > self._seen:
                self.write()

    def _kept(self) -> int:
        """The last event of what a start would go on from, by whichever process it was kept; 0 without any."""
        for path in self._folder.newest_first():
            with suppress(Exception), opened(path) as held:  # what is damaged the next start tells
                if not self._follower.misfit(held.standing):
                    return held.standing.seen
        return 0

    def _failed(self, error: Exception) -> None:
        """Once until it succeeds; tried again as if it were written, so that what fails costs no more."""
        self._written = time.monotonic()
        if not self._failing:
            log.error("the items' counters cannot be kept in %s (%s); it is tried again, and the next start reads more",
                      self._folder.path, short(str(error)) or type(error).__name__)
        self._failing = True
