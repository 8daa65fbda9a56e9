from __future__ import annotations

from contextlib import closing
from pathlib import Path

from contracts.features.event_features import EventFeatures
from serving.bundle.loaded_bundle import LoadedBundle
from serving.events.event_store import EventStore
from serving.item_counters.counter_features import features_of
from serving.item_counters.counter_standing import definitions_of
from serving.item_counters.item_slots import ItemSlots
from serving.item_counters.key_counters import KeyCounters
from tests.serving.recorded_events import SetClock, recorded_features, reordered


def said_of(folder: Path, features: EventFeatures, counters: list[KeyCounters]) -> str:
    with closing(EventStore(folder, features, SetClock())) as store:
        return definitions_of(store, features, counters)


def test_what_is_counted_makes_definitions_and_how_it_is_read_does_not(
    counted: LoadedBundle, tmp_path: Path
) -> None:
    features = recorded_features()
    own = features_of(features.of_side("item"), counted.encoder)
    counters = KeyCounters(own, features, counted.encoder, ItemSlots(counted.items))
    longer = [one._replace(window=2 * one.window) for one in own]
    other_windows = KeyCounters(longer, features, counted.encoder, ItemSlots(counted.items))
    later = features.model_copy(update={"clicks": features.clicks.model_copy(update={"window": 11})})
    other_key = features.model_copy(update={"log": features.log.model_copy(update={"key": ("request",)})})
    said = said_of(tmp_path, features, [counters])
    assert said == said_of(tmp_path, recorded_features(prior=0.9), [counters])
    assert said == said_of(tmp_path, reordered(features), [counters])
    others = [(features, [other_windows]), (later, [counters]), (other_key, [counters]), (features, [])]
    assert len({said, *(said_of(tmp_path, *one) for one in others)}) == 1 + len(others)
