"""The inputs that the counters of one key expand into: where they lie in an item's row, what counts make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contracts.config.fields import FieldConfig
from contracts.features.encoding import Encoded, Encoder, scale
from contracts.features.event_clock import Measure, measures, statistic_of
from contracts.features.feature_spec import FeatureField


class CounterFeature(NamedTuple):
    """One statistic of one window, its input as fitted, and the columns of an item's ids and numbers that it fills."""

    counter: FieldConfig
    statistic: str
    window: int
    field: FeatureField
    ids: tuple[int, ...]
    dense: int

    @property
    def measures(self) -> tuple[Measure, ...]:
        return measures(self.statistic, self.window)


def features_of(counters: Sequence[FieldConfig], encoder: Encoder) -> list[CounterFeature]:
    """Those that the bundle's networks read, in the order of the configuration."""
    spec = encoder.spec
    ids = {field.name: tuple(slot.start for slot in spec.id_slots("item") if slot.field == field.name)
           for field in spec.of_side("item")}
    dense = {slot.field: slot.start for slot in spec.dense_slots("item")}
    return [CounterFeature(counter, statistic, window, spec.by_name[name], ids[name], dense[name])
            for counter in counters for name, statistic, window in counter.counters() if name in dense]


def measures_of(features: Sequence[CounterFeature]) -> list[Measure]:
    """What they are made of, each once."""
    return list(dict.fromkeys(measure for feature in features for measure in feature.measures))


class CounterEncoder:
    """Counts [n, measures], in the order of `measures_of(features)`, to inputs, as the bundle's encoder makes them."""

    def __init__(self, features: Sequence[CounterFeature], encoder: Encoder, prior: float) -> None:
        self._encoder, self._prior = encoder, prior
        self._places = {measure: place for place, measure in enumerate(measures_of(features))}

    def inputs(self, counts: np.ndarray, features: Sequence[CounterFeature]) -> Encoded:
        """ids [n, ...] and numbers [n, ...] of some of the features, one behind the other."""
        ids, dense = list[np.ndarray](), list[np.ndarray]()
        for feature in features:
            values = self._values(counts, feature)
            ids += self._encoder.field_ids(feature.field, values)
            dense.append(scale(values, feature.field)[:, None])
        return Encoded(_beside(ids, len(counts), np.int32), _beside(dense, len(counts), np.float32))

    def _values(self, counts: np.ndarray, feature: CounterFeature) -> np.ndarray:
        measured = tuple(counts[:, self._places[measure]].astype(np.float64) for measure in feature.measures)
        found: np.ndarray = statistic_of(feature.statistic, measured, self._prior, feature.counter.prior_strength)
        return found


def _beside(parts: list[np.ndarray], rows: int, kind: type) -> np.ndarray:
    return np.concatenate(parts, axis=1) if parts else np.empty((rows, 0), dtype=kind)
