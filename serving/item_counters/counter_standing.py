"""Where counting stands: of which definitions, of which log and up to where. What was kept of another standing is not
gone on from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from contracts.features.event_features import EventFeatures
from serving.events.event_store import EventStore
from serving.item_counters.key_counters import HeldKey, KeyCounters


class Standing(NamedTuple):
    """`definitions` say what is counted of which events, `log` is the mark of the event store. All events up to number
    `seen`, which was known at `known`, are counted, and windows as of `moment`; both in microseconds since 1970."""

    definitions: str
    log: str
    seen: int
    known: int
    moment: int


class HeldCounters(NamedTuple):
    """All that it takes to go on: the event store has the rest, who has clicked on what and which ids were there."""

    standing: Standing
    keys: Sequence[HeldKey]


def definitions_of(store: EventStore, features: EventFeatures, counters: Sequence[KeyCounters]) -> str:
    """The same for every bundle that counts the same: its models, encoder and prior make no difference."""
    said = [store.key, store.on, features.label_window, [one.definition for one in counters]]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
