"""What was never told is not made up; tests/serving/metrics/test_serving_metrics.py moves each of them."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter

from serving.metrics.freshness_metrics import DriftMetrics, FreshnessMetrics
from serving.metrics.running_sample import Drift


def test_a_bundle_without_times_has_no_end_of_data() -> None:
    registry = CollectorRegistry()
    FreshnessMetrics(registry).recorded([])
    assert registry.get_sample_value("sluice_events_newest_timestamp_seconds") == 0
    assert registry.get_sample_value("sluice_bundle_data_timestamp_seconds", {"version": "v"}) is None


def test_a_validation_without_a_ratio_is_none() -> None:
    registry = CollectorRegistry()
    drift = DriftMetrics(registry)
    drift.reference(None)
    drift.drift(Drift(3))
    assert registry.get_sample_value("sluice_validation_calibration") == 0
    assert registry.get_sample_value("sluice_drift_sample_requests") == 3


def test_a_batch_of_events_is_counted_once_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, inc, counts = CollectorRegistry(), Counter.inc, list[float]()

    def told(counter: Counter, amount: float = 1) -> None:
        counts.append(amount)
        inc(counter, amount)

    monkeypatch.setattr(Counter, "inc", told)
    FreshnessMetrics(registry).recorded(["click", "view"] * 400 + ["click"] * 200)
    assert sorted(counts) == [400, 600]
    assert registry.get_sample_value("sluice_events_recorded_total", {"kind": "click"}) == 600
