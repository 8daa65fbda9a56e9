"""How long a server takes to count its items' events again after a kill, by the length of the log, with and without
what it has kept of its counters.

    sluice bench counter_restart [--items 100000] [--events 200000 2000000] [--after 100000] [--json]

For each length of the log a folder of `--fresh` is filled with so many events of the last minutes, the counters are
kept as a worker keeps them, and `after` more events come. A real `sluice serve` of one worker starts on it, then one
more without what was kept.

    first_answer_s    from starting it until its first answer
    counted_s         from starting it until requests read the counters of all events
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmarks.freshness.counter_costs import Log, counted_log, counted_world
from benchmarks.freshness.restart import kill
from benchmarks.serving.funnel import VALUES
from benchmarks.serving.synthetic_bundle import publish
from serving.bundle.loaded_bundle import LoadedBundle
from serving.counter_snapshots.kept_counters import followed
from serving.counter_snapshots.snapshot_folder import SnapshotFolder
from serving.events.event_servicer import now_micros
from serving.events.event_store import EventStore
from serving.server.catalog_client import CatalogClient
from serving.server.client import RankingClient
from sluice.demo.server_process import ServerProcess

WINDOWS = (3600, 86_400)
BATCH = 1000  # events a commit
DEADLINE, PATIENCE, LOOK_SECONDS = 5.0, 900.0, 0.05


class CounterRestart(BaseModel):
    """Of one start; `kept_mib` is the size of the snapshot, 0 without, and `items` have a counter above 0 then."""

    model_config = ConfigDict(frozen=True)

    events: int
    kept_mib: float
    first_answer_s: float
    counted_s: float
    items: int


def record(fresh: Path, log: Log, events: int) -> None:
    """As they come now."""
    with closing(EventStore(fresh, counted_log(WINDOWS), now_micros)) as store:
        for start in range(0, events, BATCH):
            log.now = now_micros()
            store.record([log.batch(min(BATCH, events - start))])


def keep(bundle: Path, fresh: Path) -> None:
    """What a worker keeps once it has counted all."""
    counters = followed(LoadedBundle.load(bundle), fresh)
    assert counters is not None  # the world has such counters
    with closing(counters):
        counters.follower.catch_up(PATIENCE)
        SnapshotFolder(fresh).keep(counters.follower.holding())


def start(bundle: Path, fresh: Path, events: int) -> CounterRestart:
    """And ends by SIGKILL. Raises TimeoutError where counting takes longer than PATIENCE seconds."""
    kept = sum(path.stat().st_size for path in SnapshotFolder(fresh).newest_first())
    begun = time.monotonic()
    server = ServerProcess(bundle, fresh.parent / "server.log", options=("--fresh", str(fresh), "--workers", "1"))
    try:
        with RankingClient(server.target) as client:
            client.rank("u0", seconds=DEADLINE)
        answered = time.monotonic() - begun
        with CatalogClient(server.target) as client:
            while not (status := client.status()).HasField("counters_age_seconds"):
                if time.monotonic() > begun + PATIENCE:
                    raise TimeoutError(f"the server still counts after {PATIENCE:g} s")
                time.sleep(LOOK_SECONDS)
        return CounterRestart(events=events, kept_mib=kept / 2**20, first_answer_s=answered,
                              counted_s=time.monotonic() - begun, items=status.counted_items)
    finally:
        kill(server)


def measure(bundle: Path, folder: Path, events: int, after: int, log: Log) -> list[CounterRestart]:
    """With what was kept, and without."""
    fresh = folder / f"fresh-{events}"
    record(fresh, log, events)
    keep(bundle, fresh)
    record(fresh, log, after)
    kept = start(bundle, fresh, events + after)
    shutil.rmtree(SnapshotFolder(fresh).path)
    return [kept, start(bundle, fresh, events + after)]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--events", type=int, nargs="+", default=[200_000, 2_000_000], help="of the log")
    parser.add_argument("--after", type=int, default=100_000, help="events that come after the counters were kept")
    parser.add_argument("--json", action="store_true", help="end with one JSON line")
    chosen = parser.parse_args(argv)
    found = list[CounterRestart]()
    with tempfile.TemporaryDirectory(prefix="sluice-restart-") as place:
        bundle, log = publish(counted_world(chosen.items, WINDOWS), Path(place), VALUES), Log(chosen.items)
        for events in chosen.events:
            found += measure(bundle, Path(place), events, chosen.after, log)
    for one in found:
        how = f"with {one.kept_mib:.1f} MiB kept" if one.kept_mib else "without what was kept"
        print(f"{one.events} events, {how}: first answer after {one.first_answer_s:.2f} s, all counted after "
              f"{one.counted_s:.2f} s, {one.items} items")
    if chosen.json:
        print(json.dumps({"counter_restart": [one.model_dump() for one in found]}))


if __name__ == "__main__":
    main()
