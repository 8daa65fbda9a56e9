from __future__ import annotations

import numpy as np

from contracts.features.encoding import Encoder
from contracts.features.feature_spec import FeatureField, FeatureSpec
from serving.item_counters.counter_features import CounterEncoder, features_of, measures_of
from tests.serving.recorded_events import recorded_features

FEATURES = recorded_features(prior=0.1)


def encoder(*counters: str) -> Encoder:
    fields = [FeatureField(name="age", kind="numeric", side="item", edges={2: (1.0,)}),
              *(FeatureField(name=name, kind="counter", side="item", edges={2: (2.0,), 3: (1.0, 4.0)}, log=True,
                             mean=1.0, std=2.0) for name in counters)]
    return Encoder(FeatureSpec(fields=tuple(fields)), {})


def test_inputs_are_what_the_bundles_encoder_makes_of_the_statistics() -> None:
    made = encoder("views_count_1m", "views_rate_1m")
    features = features_of(FEATURES.of_side("item"), made)
    assert [(one.ids, one.dense) for one in features] == [((1, 2), 1), ((3, 4), 2)]
    counts = np.array([[0, 0, 0], [5, 3, 1]], dtype=np.int32)  # shown, closed, clicked
    assert [measure.event for measure in measures_of(features)] == ["shown", "closed", "clicked"]
    found = CounterEncoder(features, made, 0.1).inputs(counts, features)
    raw = {"views_count_1m": [0.0, 5.0], "views_rate_1m": [2 / 20, (1 + 2) / (3 + 20)]}
    whole = made.encode(raw, "item")
    np.testing.assert_array_equal(found.ids, whole.ids[:, 1:])
    np.testing.assert_array_equal(found.dense, whole.dense[:, 1:])


def test_a_feature_that_no_network_reads_is_none() -> None:
    made = encoder("views_rate_1m")
    features = features_of(FEATURES.of_side("item"), made)
    assert [one.field.name for one in features] == ["views_rate_1m"]
    assert [measure.event for measure in measures_of(features)] == ["closed", "clicked"]
    found = CounterEncoder(features, made, 0.1).inputs(np.zeros((3, 2), np.int32), [])
    assert (found.ids.shape, found.dense.shape) == ((3, 0), (3, 0))
