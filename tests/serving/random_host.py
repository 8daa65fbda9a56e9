"""A host whose events come at random: late, twice under their id, twice under another id, and clicks before what they
click on; times coincide. Before every impression it is asked what a request would read of user and item.

It may keep its items' counters and begin anew from what it kept, at random moments of their own.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from contracts.config.config import Config
from contracts.features.encoding import Encoder, bin_ids
from contracts.features.event_features import EventFeatures
from contracts.features.feature_spec import FIRST_ID, PADDING, FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle
from serving.counter_snapshots.kept_counters import take_up
from serving.counter_snapshots.snapshot_folder import SnapshotFolder
from serving.events.event import Event, Kind
from serving.events.event_store import EventStore
from serving.events.event_users import EventUsers
from serving.item_counters.counter_follower import CounterFollower
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures

SECOND, PRIOR, LENGTH = 1_000_000, 0.2, 4
START = int(datetime(2026, 1, 5, 23, 59, 30, tzinfo=UTC).timestamp()) * SECOND  # midnight comes on the way
COUNTER = {"kind": "counter", "windows": [5, 10, 25, 1000], "prior_strength": 3}
CONFIG = Config.model_validate({
    "name": "parity", "features": {"publish_every": 0}, "items": {"path": "{data}/items", "key": "iid"},
    "log": {"path": "{data}/shown", "user_id": "uid", "item_id": "iid", "request_id": "request", "event_time": "time",
            "known_time": "known", "key": ["request", "iid"], "max_bad_share": 0},
    "label": {"clicks": {"path": "{data}/clicked", "on": ["request", "iid"], "event_time": "time",
                         "known_time": "known", "window": 4}},
    "fields": [
        {"name": "item", "kind": "categorical", "side": "item", "column": "iid", "min_count": 1},
        {"name": "place", "kind": "categorical", "side": "context"},
        {"name": "of_user", "side": "user", "by": ["uid"], **COUNTER},
        {"name": "of_item", "side": "item", "by": ["iid"], **COUNTER},
        {"name": "of_kind", "side": "item", "by": ["kind"], **COUNTER},
        {"name": "recent", "kind": "sequence", "side": "user", "of": "item", "length": LENGTH},
        {"name": "kind_of", "kind": "categorical", "side": "item", "column": "kind", "min_count": 1},
        {"name": "recent_kinds", "kind": "sequence", "side": "user", "of": "kind_of", "length": LENGTH},
    ],
})
CLICKS_OF_ONE_TIME = CONFIG.model_copy(update={"label": CONFIG.label.model_copy(update={
    "clicks": CONFIG.label.clicks.model_copy(update={"event_time": "known"})})})  # type: ignore[union-attr]


Asked = tuple[str, int]  # request and microseconds
ITEMS, KINDS, KNOWN_KINDS = ["i0", "i1", "i2", "i3"], ["a", "b", "a", None], ["a", "b"]
OF_ITEM = [name for field in CONFIG.fields if field.side == "item" for name, _, _ in field.counters()]
WINDOWS = {name: window for field in CONFIG.fields for name, _, window in field.counters()}
STORED = -7.0  # in the bundle's table


def counted_bundle(loaded: LoadedBundle) -> LoadedBundle:
    """A bundle whose items' inputs are their counters, numbers as they are and ids that tell some of them apart, and
    their kinds, which its histories list."""
    edges = {4: (0.15, 0.25, 1.0)}
    counters = tuple(FeatureField(name=name, kind="counter", side="item", edges=edges) for name in OF_ITEM)
    known = {"vocabulary": "kind", "size": len(KNOWN_KINDS) + FIRST_ID}
    spec, keys = FeatureSpec(fields=(*counters, *(FeatureField.model_validate(made | known) for made in (
        {"name": "kind_of", "kind": "categorical", "side": "item"},
        {"name": "recent_kinds", "kind": "sequence", "side": "user", "of": "kind_of", "length": LENGTH},
    )))), Vocabulary.of(ITEMS, "string")
    kinds = Vocabulary.of(KNOWN_KINDS, "string")
    ids, dense = np.zeros((len(ITEMS) + 1, len(OF_ITEM) + 1), np.int32), np.full((len(ITEMS) + 1, len(OF_ITEM)), STORED)
    ids[:, -1] = kinds.look_up([*KINDS, None], "string")
    nobody = FeatureStore(Vocabulary.of([], "string"), np.zeros((1, LENGTH), np.int32), np.empty((1, 0), np.float32))
    return replace(loaded, spec=spec, encoder=Encoder(spec, {"kind": kinds}), users=nobody,
                   groups={"of_kind": np.array([0, 1, 0, -1], dtype=np.int32)},
                   listed={"kind_of": np.array([kind is not None for kind in [*KINDS, None]])},
                   items=FeatureStore(keys, ids, dense.astype(np.float32)))


class Host:
    """A server's store with a clock of its own, and what it said when it was asked. Between things that happen it keeps
    its counters, and begins anew, with that probability each."""

    def __init__(
        self, folder: Path, seed: int, loaded: LoadedBundle, config: Config = CONFIG, anew: float = 0.0
    ) -> None:
        self.chance, self.anew, self.snapshots, self.resumed = random.Random(seed), anew, SnapshotFolder(folder), 0
        self.draw, self.now, self.said = random.Random(seed), START, dict[Asked, dict[str, Any]]()
        self.config, self.features = config, EventFeatures.of(config, PRIOR, None, {"place": "text"}, ["kind"])
        self.store = self.opened(folder)
        self.users = EventUsers(lambda: self.opened(folder), self.features, lambda: self.now)
        self.loop, self.served, self.served_of_items = asyncio.Runner(), 0, 0
        self.folder, self.bundle = folder, counted_bundle(loaded)
        self.counters = self.begun()
        self.sent: list[Event] = []

    def opened(self, folder: Path) -> EventStore:
        return EventStore(folder, self.features, lambda: self.now, margin=0)

    def begun(self) -> CounterFollower:
        """Counters as a new process has them."""
        found = CounterFollower(self.bundle, self.features, lambda: self.opened(self.folder), lambda: self.now)
        self.inputs = RequestFeatures(replace(self.bundle, live=found.columns))
        return found

    def keep_and_begin_anew(self) -> None:
        """As chance has it; what is kept may have been kept some time ago."""
        if self.chance.random() < self.anew and self.counters.seen:
            self.snapshots.keep(self.counters.holding())
        if self.chance.random() < self.anew:
            self.counters.close()
            self.counters = self.begun()
            self.resumed += take_up(self.counters, self.snapshots) is not None

    def close(self) -> None:
        self.users.close()
        self.counters.close()
        self.loop.close()
        self.store.close()

    def ask_and_show(self, number: int) -> Event:
        """Asked at the present, and shown at it; which is recorded now or later."""
        user, item = f"u{self.draw.randrange(3)}", self.draw.choice(ITEMS)
        request = f"r{number}"
        self.said[request, self.now] = self.answer(user, item)
        return self._event(Kind.IMPRESSION, f"shown {number}", self.now, user, item, request)

    def answer(self, user: str, item: str) -> dict[str, Any]:
        of_user = self.store.of_user(user, self.now)
        found: dict[str, Any] = {"recent": list(of_user.history(self.now, LENGTH))}
        for field in self.features.of_side("user"):
            found |= of_user.counters(field, self.now, PRIOR)
        return found | self.request(user) | self.candidate(item)

    def candidate(self, item: str) -> dict[str, Any]:
        """What the ranker is given of an item: its counters, those of windows that the folder does not hold as the
        bundle has them."""
        while self.counters.look():
            pass
        read = self.inputs.candidate_inputs(np.array([ITEMS.index(item)]), np.empty((1, 0), np.int32))
        found = dict(zip(OF_ITEM, read.dense[0].tolist(), strict=True))
        whole = {name for name in OF_ITEM if self.now - WINDOWS[name] * SECOND >= self.store.since}
        assert {name for name, value in found.items() if value != STORED} == whole
        self.served_of_items += len(whole)
        bins = {name: bin_ids(np.array([found[name]]), (0.15, 0.25, 1.0))[0] for name in whole}
        assert {name: read.ids[0, place] for place, name in enumerate(OF_ITEM) if name in whole} == bins
        return {name: found[name] for name in whole}

    def request(self, user: str) -> dict[str, Any]:
        """What a request is told of its user: all histories, and the counters of windows that the folder holds."""
        read = self.loop.run(self.users.read(user))
        assert not read.report.cause
        self.served += len(read.values)
        slot = self.inputs.request_ids["recent_kinds"]
        listed = self.inputs.requester(RankQuery(user, 1, fresh=read)).inputs.ids[0, slot.start :][:LENGTH]
        kinds = [KNOWN_KINDS[code - FIRST_ID] for code in listed.tolist() if code != PADDING]
        return {"recent": list(read.recent[:LENGTH]), "recent_kinds": kinds, **read.values}

    def click(self, number: int, shown: Event) -> Event:
        """Within the label window or beyond it, told with any delay."""
        request = str(shown.columns["request"])
        assert shown.at is not None
        at = shown.at + self.draw.choice([0, 1, 2, 4, 4, 5, 30]) * SECOND
        return self._event(Kind.CLICK, f"click {number}", min(at, self.now), shown.user, shown.item, request)

    def _event(self, kind: Kind, name: str, at: int, user: str, item: str, request: str) -> Event:
        columns = {"uid": user, "iid": item, "request": request}
        columns |= {"place": self.draw.choice("abc")} if kind is Kind.IMPRESSION else {}
        return Event(id=name, kind=kind, at=at, user=user, item=item, columns=columns)

    def again(self, number: int) -> Event:
        """An event that was sent: under its id, or under another one and of another moment."""
        event = self.draw.choice(self.sent)
        if self.draw.random() < 0.5:
            return event
        assert event.at is not None
        at = min(event.at + self.draw.choice([0, SECOND]), self.now)
        return Event(id=f"again {number}", kind=event.kind, at=at, user=event.user, item=event.item,
                     columns=event.columns)

    def send(self, events: list[Event]) -> None:
        self.now += 1
        self.store.record([events])
        self.sent += events
        self.now += 10


def lived(host: Host, requests: int) -> None:
    """Whole seconds, give or take some microseconds, between things that happen."""
    waiting: list[Event] = []
    shown: list[Event] = []
    for number in range(requests):
        host.keep_and_begin_anew()
        host.now += host.draw.choice([0, 0, 1, 1, 3]) * SECOND
        shown.append(host.ask_and_show(number))
        host.now += 1
        waiting.append(shown[-1])
        if host.draw.random() < 0.6:
            waiting.append(host.click(number, host.draw.choice(shown[-4:])))
        if host.sent and host.draw.random() < 0.3:
            waiting.append(host.again(number))
        if host.draw.random() < 0.5:
            host.draw.shuffle(waiting)
            kept = host.draw.randrange(3)
            host.send(waiting[kept:])
            waiting = waiting[:kept]
    host.send(waiting)
