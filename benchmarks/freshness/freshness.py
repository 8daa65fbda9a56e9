"""Items that change while they are served: how soon they are seen, and what that costs the requests beside them.

    sluice bench freshness [--items 1000000] [--seconds 60] [--rate 100] [--updates 1000] [--workers 2] [--kills 50]
                          [--events 5000] [--outage 30] [--json]

A real `sluice serve --fresh` of the synthetic world of `sluice bench funnel`, asked by a generator of its own, first
undisturbed, then beside the changes, then with all of them made and none coming: three in four are bids, the others
stock, withdrawals, and items new or described anew. Who sends them and who watches has a connection of its own, which
is there throughout.

    updates_per_second    changes that were acknowledged
    visible_p99_s         from sending a batch until the workers behind several connections show it
    request_p99_ratio     p99 of the requests beside the changes over the p99 of those before
    after_p99_ratio       p99 of the requests after the changes over the p99 of those before
    requests_failed       requests of these three stretches that were not answered, and are in no p99
    restart_s, restart_lost    after all that, SIGKILL of server and workers: from starting it on the same folder until
                          its first answer, and acknowledged changes that it does not know then
    recall_min            recall at 100 against exact search once a third, two thirds and all of the changes are made,
                          over the mean of indexes built anew of the same items, by the same queries: the lowest (the
                          changed one reads more codes by what has changed, listed_vectors.py)
    kills, kills_amid_changes, acknowledged_lost    SIGKILL at random moments of changes of every kind, how often while
                                some were being sent, and what was lost of them
    event_age_p99_s       beside events through a Redis stream: from adding one to the request that knows it
    store_outage_failed, store_healed_s    a shared store of users is stopped: requests that failed, and seconds from
                          its going on until all are answered from it

A part that fails is named under "failed", beside what the others have found, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from benchmarks.freshness import events, kills, outage, redis_process, restart
from benchmarks.freshness.changes import DrawnChanges, Updater, connected
from benchmarks.freshness.fresh_build import recalls_beside
from benchmarks.serving.funnel import VALUES, world
from benchmarks.serving.open_loop import LoadFigures, offered
from benchmarks.serving.synthetic_bundle import publish
from sluice.demo.server_process import ServerProcess

BATCH, WATCHERS, DEADLINE = 50, 2, 2.0
KILLED_ITEMS = OUTAGE_ITEMS = 20_000


class FreshnessFigures(BaseModel):
    """What the last line says under "freshness"; None was not measured."""

    model_config = ConfigDict(frozen=True)

    updates_per_second: float | None = None
    visible_p99_s: float | None = None
    request_p99_ratio: float | None = None
    after_p99_ratio: float | None = None
    requests_failed: int | None = None
    recall_min: float | None = None
    restart_s: float | None = None
    restart_lost: int | None = None
    kills: int | None = None
    kills_amid_changes: int | None = None
    acknowledged_lost: int | None = None
    events_per_second: float | None = None
    event_age_p99_s: float | None = None
    store_outage_failed: int | None = None
    store_healed_s: float | None = None


def resident(server: ServerProcess) -> float:
    """MiB of the server's largest process."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in restart.processes(server)
             if Path(f"/proc/{pid}").exists()]
    return max(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def beside_requests(folder: Path, bundle: Path, chosen: argparse.Namespace) -> FreshnessFigures:
    options = ("--fresh", str(folder / "fresh"), "--workers", str(chosen.workers))
    server = ServerProcess(bundle, folder / "server.log", options=options)
    try:
        with connected(server.target, 1 + WATCHERS) as (sender, *watchers):
            offered(server.target, chosen.rate, min(10.0, chosen.seconds), DEADLINE)
            before, memory = offered(server.target, chosen.rate, chosen.seconds, DEADLINE), resident(server)
            begun = time.process_time()
            with Updater(sender, watchers, DrawnChanges(chosen.items), chosen.updates, BATCH) as updater:
                beside = offered(server.target, chosen.rate, chosen.seconds, DEADLINE)
            sending = time.process_time() - begun
            after, status = offered(server.target, chosen.rate, chosen.seconds, DEADLINE), updater.status[0]
        print_requests("before", before)
        print_requests("beside changes", beside)
        print_requests("after changes", after)
        print(f"who sends changes and watches for them has used {sending / chosen.seconds:.3f} cores")
        print(f"{updater.sent} changes {dict(updater.outcomes)}; {len(updater.visible)} batches watched; "
              f"{status.changed_items} changed, {status.hidden_items} hidden, room for {status.room}; "
              f"largest process {memory:.0f} MiB before, {resident(server):.0f} after")
        restart.kill(server)
        again = restart.measure(bundle, folder / "again.log", options, sorted(updater.withdrawn), updater.sequence)
        print(f"killed and started again: {again}, {len(updater.withdrawn)} withdrawn items asked for")
    finally:
        server.stop()
    visible, recalls = sorted(updater.visible), recalls_beside(bundle, folder / "fresh")
    print(f"recall at 100 as workers measured it: {min(updater.recalls, default=None)} at least; by the same queries:",
          "; ".join(f"{one.changed:.3f} after {one.changes} changes, {', '.join(f'{of:.3f}' for of in one.anew)} of "
                    "indexes built anew" for one in recalls))
    return FreshnessFigures(
        restart_s=again.seconds, restart_lost=again.shown_again + again.forgotten,
        updates_per_second=updater.rate, visible_p99_s=visible[int(0.99 * len(visible))],
        request_p99_ratio=beside.p99_ms / before.p99_ms, after_p99_ratio=after.p99_ms / before.p99_ms,
        requests_failed=sum(one.requests - one.codes.get("OK", 0) for one in (before, beside, after)),
        recall_min=min(one.ratio for one in recalls))


def print_requests(name: str, found: LoadFigures) -> None:
    print(f"{name}: {found.answered:.1f}/s answered, p50 {found.p50_ms:.1f}, p95 {found.p95_ms:.1f}, p99 "
          f"{found.p99_ms:.1f} ms, {found.codes}, {found.degraded} degraded, sent {found.sent_late_ms:.1f} ms late")


def after_kills(folder: Path, count: int) -> FreshnessFigures:
    bundle = publish(world(KILLED_ITEMS, "dnn"), folder, VALUES)
    found = kills.measure(bundle, folder, KILLED_ITEMS, count)
    print(f"{count} kills: {found}")
    return FreshnessFigures(kills=count, kills_amid_changes=int(found["amid_changes"]),
                            acknowledged_lost=int(found["acknowledged_lost"]))


def beside_events(folder: Path, seconds: float, per_second: float) -> FreshnessFigures:
    found = events.measure(folder, seconds, per_second)
    print_requests("beside events", found.beside)
    print(f"{found.per_second:.0f} events a second, {len(found.ages)} probes, {found.lost} lost")
    return FreshnessFigures(events_per_second=found.per_second,
                            event_age_p99_s=float(np.quantile(found.ages, 0.99)) if found.ages else None)


def without_store(folder: Path, seconds: float) -> FreshnessFigures:
    found = outage.measure(folder, publish(world(OUTAGE_ITEMS, "dnn"), folder / "outage", VALUES), seconds)
    print_requests(f"store stopped for {seconds:.0f} s", found.load)
    return FreshnessFigures(store_outage_failed=found.failed, store_healed_s=found.healed_seconds)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--bundle", type=Path, help="a published world of so many items, in place of a new one")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second")
    parser.add_argument("--updates", type=float, default=1000.0, help="changes a second")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kills", type=int, default=50, help="0 kills nothing")
    parser.add_argument("--events", type=float, default=5000.0, help="a second, through a Redis stream; 0 sends none")
    parser.add_argument("--outage", type=float, default=30.0,
                        help="seconds without a store of users; 0 leaves it out")
    parser.add_argument("--json", action="store_true", help="end with one JSON line, as without it")
    chosen = parser.parse_args(argv)
    if chosen.events or chosen.outage:
        redis_process.program()
    with tempfile.TemporaryDirectory(prefix="sluice-freshness-") as place:
        found, failed = whole(parts(Path(place), chosen))
    print(json.dumps({"freshness": found.model_dump(exclude_none=True), **({"failed": failed} if failed else {})}))
    if failed:
        sys.exit(1)


def parts(folder: Path, chosen: argparse.Namespace) -> dict[str, Callable[[], FreshnessFigures]]:
    """Those that are asked for, by name, in the order in which they are measured."""
    def requests() -> FreshnessFigures:
        bundle = chosen.bundle or publish(world(chosen.items, "dnn"), folder / "large", VALUES)
        return beside_requests(folder, bundle, chosen)

    known: dict[str, tuple[float, Callable[[], FreshnessFigures]]] = {
        "requests": (chosen.updates, requests),
        "kills": (chosen.kills, lambda: after_kills(folder / "small", chosen.kills)),
        "events": (chosen.events, lambda: beside_events(folder, chosen.seconds, chosen.events)),
        "outage": (chosen.outage, lambda: without_store(folder, chosen.outage)),
    }
    return {name: measure for name, (asked, measure) in known.items() if asked}


def whole(measured: Mapping[str, Callable[[], FreshnessFigures]]) -> tuple[FreshnessFigures, dict[str, str]]:
    """What the parts find together, and why those failed that did."""
    found, failed = FreshnessFigures(), dict[str, str]()
    for name, measure in measured.items():
        try:
            found = found.model_copy(update=measure().model_dump(exclude_none=True))
        except Exception as error:  # what the others take minutes to find is not lost
            traceback.print_exc()
            failed[name] = f"{type(error).__name__}: {error}"
    return found, failed


if __name__ == "__main__":
    main()
