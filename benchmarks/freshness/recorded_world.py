"""The synthetic world of `sluice bench funnel` as a bundle whose log can be recorded: three of its users' numbers are
counters of their events, and their histories are clicks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.serving.funnel import VALUES, world
from benchmarks.serving.synthetic_bundle import publish
from contracts.config.config import Config
from contracts.features.event_features import EventFeatures

WINDOW = 10  # seconds of the counters: a server serves them fresh once it has run as long
PRIOR = 0.05


def recorded_log() -> EventFeatures:
    """Counters over ten seconds, event-fresh."""
    log = {"path": "{data}/shown", "user_id": "user", "item_id": "item", "request_id": "request", "event_time": "time",
           "known_time": "known", "key": ["request", "item"]}
    clicks = {"path": "{data}/clicked", "on": ["request", "item"], "event_time": "time", "known_time": "known",
              "window": 1}
    config = Config.model_validate({
        "name": "recorded", "log": log, "label": {"clicks": clicks}, "features": {"publish_every": 0}, "fields": [
            {"name": "item0", "kind": "categorical", "side": "item", "column": "item"},
            {"name": "seen", "kind": "counter", "side": "user", "by": ["user"], "windows": [WINDOW]}]})
    return EventFeatures.of(config, PRIOR, None, {})


def recorded_world(items: int, folder: Path) -> Path:
    """The published bundle's folder."""
    features = recorded_log()
    counters = tuple(name for field in features.counters for name, _, _ in field.counters())
    made = replace(world(items, "dnn", counters=counters), event_features=features)
    return publish(made, folder, VALUES)
