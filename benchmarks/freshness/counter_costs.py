"""What event-fresh counters of items cost one worker, in process: CPU of an event, and of a request that reads them.

    sluice bench counter_costs [--items 100000] [--seconds 120] [--events 5000] [--json]

Events of a made-up clock, so many a second: impressions of items drawn with heavy tails, every fifth event a click.
They are recorded as the server records them and counted as a worker counts them, ten looks a second, over windows of 10
and 60 seconds, so that as many leave as enter. CPU microseconds of an event are those of the thread that works; of a
request, medians of the whole funnel with the bundle's counters and with live ones, in turns, after the events.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict
from threadpoolctl import threadpool_limits

from benchmarks.freshness.filters import query
from benchmarks.serving.funnel import RATES, world
from contracts.config.config import Config
from contracts.features.event_clock import SECOND
from contracts.features.event_features import EventFeatures
from serving.bundle.loaded_bundle import LoadedBundle
from serving.events.event import Event, Kind
from serving.events.event_store import EventStore
from serving.item_counters.counter_follower import CounterFollower
from serving.request.deadline import Deadline
from serving.stages.funnel import Funnel

WINDOWS, LABEL_WINDOW, PRIOR = (10, 60), 5, 0.05
LOOKS, CLICKED = 10, 5  # a second; every fifth event is a click
START = 1_767_600_000 * SECOND
WARM, ASKED = 20, 200  # requests


class CounterCosts(BaseModel):
    """CPU microseconds of an event to be recorded, once a host, and to be counted, in each worker; milliseconds of the
    longest look; of a request by the counters that it reads. `items` have a counter above 0, of `held` impressions."""

    model_config = ConfigDict(frozen=True)

    record_us: float
    count_us: float
    longest_look_ms: float
    request_ms: dict[str, float]
    items: int
    held: int


def counted_log(windows: Sequence[int] = ()) -> EventFeatures:
    """With a counter of items over `windows` (seconds; none: WINDOWS), event-fresh."""
    log = {"path": "{data}/shown", "user_id": "user", "item_id": "item", "request_id": "request", "event_time": "time",
           "known_time": "known", "key": ["request", "item"]}
    clicks = {"path": "{data}/clicked", "on": ["request", "item"], "event_time": "time", "known_time": "known",
              "window": LABEL_WINDOW}
    config = Config.model_validate({
        "name": "counted", "log": log, "label": {"clicks": clicks}, "features": {"publish_every": 0}, "fields": [
            {"name": "item0", "kind": "categorical", "side": "item", "column": "item"},
            {"name": "shown", "kind": "counter", "side": "item", "by": ["item"], "windows": list(windows or WINDOWS)}]})
    return EventFeatures.of(config, PRIOR, None, {})


def counted_world(items: int, windows: Sequence[int] = ()) -> LoadedBundle:
    """Some of its items' numbers are counters."""
    features = counted_log(windows)
    names = [name for field in features.counters for name, _, _ in field.counters()]
    return replace(world(items, "dnn", rates=[*names, *RATES[len(names):]]), event_features=features)


class Log:
    """Events of a clock that goes by itself."""

    def __init__(self, items: int, seed: int = 0) -> None:
        self._items, self._draw, self._number, self.now = items, np.random.default_rng(seed), 0, START

    def batch(self, size: int) -> list[Event]:
        """As of now."""
        found = list[Event]()
        for item in (self._draw.zipf(1.2, size) % self._items).tolist():
            if self._number % CLICKED == CLICKED - 1 and found:
                shown = found[-1]
                found.append(replace(shown, id=f"c{self._number}", kind=Kind.CLICK))
            else:
                columns = {"user": f"u{self._number % 1000}", "item": f"i{item}", "request": f"r{self._number}"}
                found.append(Event(id=f"s{self._number}", kind=Kind.IMPRESSION, at=self.now, user=columns["user"],
                                   item=columns["item"], columns=columns))
            self._number += 1
        return found


def measure(bundle: LoadedBundle, folder: Path, seconds: int, events: int) -> CounterCosts:
    features, log = counted_log(), Log(len(bundle.items))
    store = EventStore(folder, features, lambda: log.now)
    follower = CounterFollower(bundle, features, lambda: EventStore(folder, features, lambda: log.now), lambda: log.now)
    recorded, counted = list[float](), list[float]()
    for _ in range(seconds * LOOKS):
        batch = log.batch(events // LOOKS)
        begun = time.thread_time()
        store.record([batch])
        recorded.append(time.thread_time() - begun)
        log.now += SECOND // LOOKS
        begun = time.thread_time()
        while follower.look():
            pass
        counted.append(time.thread_time() - begun)
    whole = counted[max(WINDOWS) * LOOKS:]  # as many leave as enter
    found = CounterCosts(
        record_us=1e6 * statistics.mean(recorded) / (events // LOOKS),
        count_us=1e6 * statistics.mean(whole) / (events // LOOKS), longest_look_ms=1e3 * max(whole),
        request_ms=requests(bundle, follower), items=follower.state.items, held=follower.held)
    follower.close()
    store.close()
    return found


def requests(bundle: LoadedBundle, follower: CounterFollower) -> dict[str, float]:
    funnels = {"bundle": Funnel(bundle), "live": Funnel(replace(bundle, live=follower.columns))}
    spent: dict[str, list[float]] = {name: [] for name in funnels}
    with torch.inference_mode():
        for number in range(WARM + ASKED):
            for name, funnel in funnels.items():
                begun = time.thread_time()
                funnel.rank(query(number, {}), Deadline(None))
                spent[name].append(1e3 * (time.thread_time() - begun))
    return {name: statistics.median(times[WARM:]) for name, times in spent.items()}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=120, help="of the made-up clock, more than the longest window")
    parser.add_argument("--events", type=int, default=5000, help="of a second")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    if chosen.seconds <= max(WINDOWS):
        parser.error(f"--seconds is {chosen.seconds}; give more than the longest window, {max(WINDOWS)}")
    torch.set_num_threads(1)
    with threadpool_limits(1), tempfile.TemporaryDirectory(prefix="sluice-counters-") as place:
        found = measure(counted_world(chosen.items), Path(place), chosen.seconds, chosen.events)
    print(f"an event: {found.record_us:.1f} us of CPU to be recorded, {found.count_us:.1f} to be counted in each "
          f"worker; the longest look {found.longest_look_ms:.1f} ms")
    print(f"a request: {found.request_ms['bundle']:.3f} ms of CPU by the bundle's counters, "
          f"{found.request_ms['live']:.3f} by live ones ({found.items} items, {found.held} entries held)")
    if chosen.json:
        print(json.dumps({"counter_costs": found.model_dump()}))


if __name__ == "__main__":
    main()
