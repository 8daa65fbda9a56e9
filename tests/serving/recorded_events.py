"""A log whose events can be recorded, its events, and a store of them with a clock that a test sets."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.features.event_features import EventFeatures
from serving.events.event import Columns, Event, Kind
from serving.events.event_store import EventStore

SECOND = 1_000_000
START = 1_767_600_000 * SECOND  # 2026-01-05T08:00:00Z
LOG: dict[str, Any] = {
    "path": "{data}/shown", "user_id": "uid", "item_id": "iid", "request_id": "request", "event_time": "time",
    "known_time": "known", "position": "slot", "bid": "bid", "key": ["request", "iid"],
    "derive": {"hour": "hour(time)"}}
CLICKS: dict[str, Any] = {
    "path": "{data}/clicked", "on": ["request", "iid"], "event_time": "time", "known_time": "known", "window": 10}


def recorded_config(publish_every: int = 0, **sections: Any) -> Config:
    return Config.model_validate({
        "name": "recorded", "log": LOG, "label": {"clicks": CLICKS}, "features": {"publish_every": publish_every},
        "fields": [
            {"name": "item", "kind": "categorical", "side": "item", "column": "iid"},
            {"name": "visits", "kind": "counter", "side": "user", "by": ["uid"], "windows": [60, 600]},
            {"name": "views", "kind": "counter", "side": "item", "by": ["iid"], "windows": [60]},
            {"name": "by_place", "kind": "counter", "side": "item", "by": ["iid", "place"], "windows": [60]},
        ], **sections,
    })


def recorded_features(publish_every: int = 0, prior: float = 0.1) -> EventFeatures:
    return EventFeatures.of(recorded_config(publish_every), prior, None, {
        "place": "text", "age": "integer", "price": "number", "new": "flag", "hour": "integer"})


def reordered(features: EventFeatures) -> EventFeatures:
    """As of a configuration that names the columns of `log.key` and `label.clicks.on` the other way round."""
    log, clicks = features.log, features.clicks
    return features.model_copy(update={"log": log.model_copy(update={"key": log.key[::-1]}),
                                       "clicks": clicks.model_copy(update={"on": clicks.on[::-1]})})


def recordable(folder: Path, made: Path) -> Path:
    """The bundle of `folder`, published again below `made` as one whose events can be recorded."""
    draft = Path(shutil.copytree(folder, made / "draft"))
    (draft / bundle.MANIFEST).unlink()
    recorded_features().write(draft)
    bundle.publish(draft, made / "bundle", "market")
    return made / "bundle"


def shown_event(request: str, at: int | None, user: str = "u", item: str = "i", name: str = "") -> Event:
    columns: Columns = {"uid": user, "iid": item, "request": request, "slot": 1, "bid": 0.5, "place": "top"}
    return Event(id=name or f"shown {request}", kind=Kind.IMPRESSION, at=at, user=user, item=item, columns=columns)


def click_event(request: str, at: int | None, user: str = "u", item: str = "i", name: str = "") -> Event:
    columns = {"uid": user, "iid": item, "request": request}
    return Event(id=name or f"click {request}", kind=Kind.CLICK, at=at, user=user, item=item, columns=columns)


class SetClock:
    """Microseconds since 1970, as set."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


def store_at(folder: Path, clock: SetClock, publish_every: int = 0) -> EventStore:
    """Whose events are known a microsecond after the clock's time."""
    return EventStore(folder, recorded_features(publish_every), clock, margin=1)
