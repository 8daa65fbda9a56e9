"""What is read from /metrics, and what a change of all visits is."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from benchmarks.observability.drift import SHOWN, changed, known_change, read_psi
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureField, FeatureSpec
from serving.metrics.running_sample import Drift
from serving.metrics.serving_metrics import ServingMetrics
from sluice.demo.live_requests import Visit


def test_drift_is_read_once_the_sample_is_large_enough() -> None:
    registry = CollectorRegistry()
    metrics = ServingMetrics(registry)
    metrics.drift.drift(Drift(600, {"device": 0.5, "hour": 0.125}, 0.25))
    text = generate_latest(registry).decode()
    assert read_psi(text, 601) is None
    assert read_psi(text, 600) == {SHOWN: 0.25, "device": 0.5, "hour": 0.125}


def test_a_change_is_of_one_field_of_every_visit() -> None:
    visits = [Visit("a", {"device": "desk", "hour": 3}), Visit("b", {})]
    phones = [Visit("a", {"device": "phone", "hour": 3}), Visit("b", {"device": "phone"})]
    assert changed(visits, "device", "phone") == phones


def test_what_no_server_takes_is_refused_before_one_is_asked() -> None:
    device = FeatureField(name="device", kind="categorical", side="context", vocabulary="device", size=4)
    item = FeatureField(name="brand", kind="categorical", side="item", vocabulary="brand", size=4)
    spec = FeatureSpec(fields=(device, item))
    assert known_change(spec, "device=phone") == ("device", "phone")
    for change in ("brand=b1", "device", "weather=fine"):
        with pytest.raises(ConfigError, match=r"of a context field; there are device$"):
            known_change(spec, change)
