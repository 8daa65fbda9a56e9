"""Reads a stream once and is killed by its own hand: `before` what it read is on the disk, or `after`, unacknowledged.

    python -m tests.serving.events.killed_reader ADDRESS FOLDER before|after
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from contracts.config.stages import Serve
from serving.events.event import Event
from serving.events.event_servicer import now_micros
from serving.events.event_store import EventStore, Recorded
from serving.events.event_stream import EventStream
from serving.redis_store.address import waiting_client
from tests.serving.recorded_events import recorded_features


def killed(kinds: Sequence[str] = ()) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Mortal(EventStore):
    """Dies before it records."""

    def record(self, batches: Sequence[Sequence[Event]]) -> list[Recorded]:
        killed()
        return super().record(batches)


def main(address: str, folder: str, when: str) -> None:
    kind = Mortal if when == "before" else EventStore
    store = kind(Path(folder), recorded_features(), now_micros)
    stream = EventStream(waiting_client(address), store, recorded_features(), Serve(), killed)
    while True:
        stream.turn(1.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
