"""What changes of items cost one worker, in process: CPU, the longest turn of the interpreter's, memory over minutes.

    sluice bench change_costs [--items 1000000] [--changes 180000] [--bundle BUNDLE] [--json]

The changes of `sluice bench freshness`, stored in batches of 50 and shown as a worker does: read from the store,
written in short turns, published. CPU milliseconds of the thread that works, of 1,000 changes; a request's are medians,
before any change and after every tenth of them; memory is the process's resident one and the store's files. Storing is
done by one worker for all of them, the rest by each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import torch
from pydantic import BaseModel, ConfigDict
from threadpoolctl import threadpool_limits

from benchmarks.freshness.changes import DrawnChanges
from benchmarks.freshness.filters import query
from benchmarks.serving.funnel import VALUES, clock, world
from benchmarks.serving.synthetic_bundle import publish
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.change import WITHDRAWN, Change, Kind, encoded
from serving.catalogue.change_store import ChangeStore
from serving.catalogue.follower import AT_ONCE, turns
from serving.catalogue.fresh_bundle import FreshBundle
from serving.request.deadline import Deadline
from serving.server.catalog_client import ItemChange
from serving.stages.funnel import Funnel

BATCH, LOOKS, ASKED = 50, 10, 100
Found = TypeVar("Found")


class ChangeCosts(BaseModel):
    """By step: CPU milliseconds of 1,000 changes, and of the longest single one. Requests' CPU milliseconds and MiB of
    the process and of the store, before the changes and after each tenth of them."""

    model_config = ConfigDict(frozen=True)

    cpu_ms: dict[str, float]
    longest_ms: dict[str, float]
    request_ms: list[float]
    process_mib: list[float]
    store_mib: list[float]
    changed: int


class Timed:
    """CPU seconds of this thread by the name of what was done, all together and the longest."""

    def __init__(self) -> None:
        self.spent, self.longest = defaultdict[str, float](float), defaultdict[str, float](float)

    def __call__(self, name: str, work: Callable[[], Found]) -> Found:
        begun = time.thread_time()
        found = work()
        seconds = time.thread_time() - begun
        self.spent[name] += seconds
        self.longest[name] = max(self.longest[name], seconds)
        return found


def stored(kind: str, change: ItemChange) -> list[Change]:
    """As the server stores it."""
    now, said = time.time_ns() // 1000, dict[Kind, object]()
    if kind in ("withdraw", "upsert"):
        said["item"] = WITHDRAWN if kind == "withdraw" else dict(change.values or {})
    if change.bid is not None:
        said["bid"] = change.bid
    if change.stock is not None:
        said["stock"] = change.stock
    return [Change(item=change.item, kind=name, version=change.version, event_time=now, arrived=now,
                   value=encoded(value)) for name, value in said.items()]


class Worker:
    """The items of a bundle, and the store that it follows in `folder`."""

    def __init__(self, bundle: Path, folder: Path) -> None:
        self._folder, self.store, self.timed = folder, ChangeStore(folder), Timed()
        self.fresh = FreshBundle(LoadedBundle.load(bundle, check_parity=False), bundle, self.store.numbers_of)
        self.funnel = Funnel(self.fresh.bundle)
        self._applied = 0

    def take(self, changes: Sequence[Change]) -> None:
        timed, fresh = self.timed, self.fresh
        timed("store", lambda: self.store.record(changes))
        found = timed("read", lambda: self.store.after(self._applied, AT_ONCE))
        for part in turns([change for _, change in found]):
            timed("write", lambda part=part: fresh.write(part))  # type: ignore[misc]
        timed("publish", fresh.publish)
        self._applied = found[-1][0]

    def request_ms(self) -> float:
        with torch.inference_mode():
            return statistics.median(clock(lambda number: self.funnel.rank(query(number, {}), Deadline(None)), ASKED,
                                           time.thread_time))

    def memory(self) -> tuple[float, float]:
        """MiB of the process and of the store's files."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        files = sum(path.stat().st_size for path in self._folder.iterdir())
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, files / 2**20


def measure(bundle: Path, folder: Path, items: int, changes: int) -> ChangeCosts:
    worker, drawn = Worker(bundle, folder), DrawnChanges(items)
    requests, memories, done = [worker.request_ms()], [worker.memory()], 0
    with closing(worker.store):
        for look in range(1, LOOKS + 1):
            while done < changes * look // LOOKS:
                kind, batch = drawn.batch(BATCH)
                worker.take([change for one in batch for change in stored(kind, one)])
                done += BATCH
            requests.append(worker.request_ms())
            memories.append(worker.memory())
    timed = worker.timed
    return ChangeCosts(
        cpu_ms={name: 1e6 * seconds / done for name, seconds in timed.spent.items()},
        longest_ms={name: 1e3 * seconds for name, seconds in timed.longest.items()}, request_ms=requests,
        process_mib=[process for process, _ in memories], store_mib=[files for _, files in memories],
        changed=worker.fresh.changed_items)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=180_000)
    parser.add_argument("--bundle", type=Path, help="a published world of so many items, in place of a new one")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    with threadpool_limits(1), tempfile.TemporaryDirectory(prefix="sluice-changes-") as place:
        bundle = chosen.bundle or publish(world(chosen.items, "dnn"), Path(place), VALUES)
        found = measure(bundle, Path(place) / "fresh", chosen.items, chosen.changes)
    for name, spent in found.cpu_ms.items():
        print(f"{name:8} {spent:7.2f} ms of CPU for 1,000 changes, the longest {found.longest_ms[name]:6.2f} ms")
    for name, figures in (("request, ms", found.request_ms), ("process, MiB", found.process_mib),
                          ("store, MiB", found.store_mib)):
        print(f"{name:13}", *(f"{figure:8.2f}" for figure in figures))
    if chosen.json:
        print(json.dumps({"change_costs": found.model_dump()}))


if __name__ == "__main__":
    main()
