from __future__ import annotations

from pathlib import Path

from benchmarks.freshness.recorded_world import recorded_log, recorded_world
from serving.bundle.loaded_bundle import LoadedBundle


def test_its_counters_are_fields_of_its_users(tmp_path: Path) -> None:
    loaded = LoadedBundle.load(recorded_world(500, tmp_path))
    assert loaded.event_features == recorded_log()
    assert loaded.event_features.fresh
    counters = {name for field in loaded.event_features.of_side("user") for name, _, _ in field.counters()}
    assert counters <= {field.name for field in loaded.spec.of_side("user") if field.dense}
