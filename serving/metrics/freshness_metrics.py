"""How old the data are that requests are answered from, and how far they are from what the bundle was made from.

`field` takes the names of the bundle's fields, `kind` those of the proto's events, `version` as everywhere.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from contracts.bundle.bundle import Manifest
from serving.item_counters.counter_state import CounterState
from serving.metrics.running_sample import Drift
from serving.users.circuit_breaker import StoreState

AGES = (1, 10, 60, 600, 3600, 6 * 3600, 86400, 3 * 86400, 7 * 86400, 30 * 86400)


class FreshnessMetrics:
    """One per process, beside ServingMetrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._data = Gauge("sluice_bundle_data_timestamp_seconds", "Until when the data of a served bundle reach.",
                           ["version"], registry=registry, multiprocess_mode="livemax")
        self._lag = Gauge("sluice_catalogue_lag_seconds", "Since when changes of items may be stored and not shown, in "
                          "any process.", registry=registry, multiprocess_mode="livemax")
        self._unshown = Gauge("sluice_catalogue_unshown_items", "Items whose last description cannot be shown, in the "
                              "process with the most.", registry=registry, multiprocess_mode="livemax")
        self._events = Counter("sluice_events_recorded_total", "New events on the disk.", ["kind"], registry=registry)
        self._late = Counter("sluice_events_late_commits_total", "Commits of events that were done after their known "
                             "time.", registry=registry)
        self._refused = Counter("sluice_events_refused_total", "Events that are none of the log, by how they came.",
                                ["by"], registry=registry)
        for by in ("call", "stream"):
            self._refused.labels(by)
        self._newest = Gauge("sluice_events_newest_timestamp_seconds", "When the last event was recorded.",
                             registry=registry, multiprocess_mode="max")
        self._ages = Histogram("sluice_user_age_seconds", "How old the newest that is known of a requester beyond the "
                               "bundle was, of those with any.", buckets=AGES, registry=registry)

        self._store_published = Gauge(
            "sluice_user_store_published_timestamp_seconds", "As of when the store's tables of users are.",
            registry=registry, multiprocess_mode="livemin")
        self._store_down = Gauge("sluice_user_store_down", "1 while the store of users cannot be read, in any "
                                 "process.", registry=registry, multiprocess_mode="livemax")
        self._store_failures = Counter("sluice_user_store_failures_total", "Reads of the store of users without "
                                       "an answer in time.", registry=registry)
        self._known_failures = 0
        self._counted = Gauge("sluice_item_counters_items", "Items with an event-fresh counter above 0, in the process "
                              "with the most.", registry=registry, multiprocess_mode="livemax")
        self._counters_age = Gauge(
            "sluice_item_counters_age_seconds", "How long ago the event-fresh counters of items that requests rank by "
            "were true, in any process.", registry=registry, multiprocess_mode="livemax")
        self._uncounted = Gauge("sluice_item_counters_waiting_events", "Recorded events that are not yet in the items' "
                                "counters, in the process with the most.", registry=registry,
                                multiprocess_mode="livemax")
        self._uncountable = Gauge("sluice_item_counters_failing", "1 while events cannot be counted, in any process.",
                                  registry=registry, multiprocess_mode="livemax")
        self._passed_over = Counter("sluice_item_counters_passed_over_total", "Kept counters from which a start could "
                                    "not go on.", registry=registry)
        self._known_passed_over = 0

    def serving(self, manifest: Manifest) -> None:
        """Says nothing of a bundle whose log has no times."""
        if manifest.metrics and manifest.metrics.data_until:
            self._data.labels(manifest.version).set(manifest.metrics.data_until.timestamp())

    def catalogue(self, lag: float, unshown: int) -> None:
        """Seconds since which changes may not be shown, and items whose description cannot be."""
        self._lag.set(lag)
        self._unshown.set(unshown)

    def recorded(self, kinds: Sequence[str]) -> None:
        """Of new events."""
        for kind, count in collections.Counter(kinds).items():
            self._events.labels(kind).inc(count)
        if kinds:
            self._newest.set(time.time())

    def was_late(self) -> None:
        """Of a commit of events."""
        self._late.inc()

    def refused(self, by: str, events: int) -> None:
        """That came by a "call" or the "stream"."""
        self._refused.labels(by).inc(events)

    def user_store(self, state: StoreState) -> None:
        """As it is now."""
        self._store_down.set(state.is_down)
        self._store_failures.inc(state.failures - self._known_failures)
        self._known_failures = state.failures
        if state.published is not None:
            self._store_published.set(state.published.timestamp())

    def item_counters(self, state: CounterState) -> None:
        """As they are now; items and age not while the bundle's are ranked by."""
        self._uncounted.set(state.waiting)
        self._uncountable.set(bool(state.failure))
        self._passed_over.inc(state.passed_over - self._known_passed_over)
        self._known_passed_over = state.passed_over
        if state.age is not None:
            self._counted.set(state.items)
            self._counters_age.set(state.age)

    def user(self, age: float) -> None:
        """In seconds."""
        self._ages.observe(age)


class DriftMetrics:
    """One per process; of several the largest is shown."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sampled = Gauge("sluice_drift_sample_requests", "Requests of the running samples.", registry=registry,
                              multiprocess_mode="livesum")
        self._fields = Gauge("sluice_field_drift_psi", "PSI of a field's values, served against trained on.",
                             ["field"], registry=registry, multiprocess_mode="livemax")
        self._scores = Gauge("sluice_score_drift_psi", "PSI of the shown probabilities, against those of the bundle's "
                             "own slates for validation's requests.", registry=registry, multiprocess_mode="livemax")
        self._validation = Gauge("sluice_validation_calibration", "Predicted over observed clicks of the bundle's "
                                 "validation window.", registry=registry, multiprocess_mode="livemax")

    def reference(self, calibration: float | None) -> None:
        """Of the bundle."""
        if calibration is not None:
            self._validation.set(calibration)

    def drift(self, found: Drift) -> None:
        """As the sample is now."""
        self._sampled.set(found.requests)
        for name, value in (found.fields or {}).items():
            self._fields.labels(name).set(value)
        if found.scores is not None:
            self._scores.set(found.scores)
