from __future__ import annotations

from serving.bundle.loaded_bundle import LoadedBundle
from serving.item_counters.counter_features import features_of
from serving.item_counters.counter_standing import definitions_of
from serving.item_counters.item_slots import ItemSlots
from serving.item_counters.key_counters import KeyCounters
from tests.serving.recorded_events import recorded_features


def test_what_is_counted_makes_definitions_and_how_it_is_read_does_not(counted: LoadedBundle) -> None:
    features = recorded_features()
    own = features_of(features.of_side("item"), counted.encoder)
    counters = KeyCounters(own, features, counted.encoder, ItemSlots(counted.items))
    longer = [one._replace(window=2 * one.window) for one in own]
    other_windows = KeyCounters(longer, features, counted.encoder, ItemSlots(counted.items))
    later = features.model_copy(update={"clicks": features.clicks.model_copy(update={"window": 11})})
    other_key = features.model_copy(update={"log": features.log.model_copy(update={"key": ("request",)})})
    said = definitions_of(features, [counters])
    assert said == definitions_of(recorded_features(prior=0.9), [counters])
    others = [(features, [other_windows]), (later, [counters]), (other_key, [counters]), (features, [])]
    assert len({said, *(definitions_of(*one) for one in others)}) == 1 + len(others)
