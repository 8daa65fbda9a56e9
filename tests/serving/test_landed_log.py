"""Tomorrow's run reads what a server landed by the configuration of today's, whose log is CSV with a derived time."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features.event_features import EventFeatures
from pipelines.ingest.ingest import ingest
from serving.events.event import Event, Kind
from serving.events.event_store import EventStore
from serving.events.landing import land
from tests.serving.recorded_events import SECOND, START

TEXT: dict[str, Any] = {"format": "csv", "options": {"header": "true", "multiLine": "true"}}
CONFIG = Config.model_validate({
    "name": "tomorrow",
    "log": {**TEXT, "path": "{data}/raw/shown.csv", "schema_ddl": "id STRING, stamp STRING, who STRING, item STRING, "
            "age INT, slot INT", "user_id": "user", "item_id": "item", "event_time": "time", "known_time": "known",
            "position": "slot", "key": ["id"], "max_bad_share": 0,
            "derive": {"time": "try_to_timestamp(stamp)", "known": "time", "user": "concat('u', who)",
                       "hour": "hour(time)", "band": "age div 10"}},
    "label": {"clicks": {**TEXT, "path": "{data}/raw/clicks.csv", "schema_ddl": "id STRING, stamp STRING", "on": ["id"],
                         "event_time": "clicked", "known_time": "told", "window": 60,
                         "derive": {"clicked": "try_to_timestamp(stamp)", "told": "clicked"}}},
    "fields": [
        {"name": "item", "kind": "categorical", "side": "item"},
        {"name": "hour", "kind": "categorical", "side": "context", "key_type": "int64"},
        {"name": "band", "kind": "categorical", "side": "context", "key_type": "int64"},
    ],
})


def rows(out: Artifacts) -> list[dict[str, Any]]:
    table = ds.dataset(out.events, format="parquet", partitioning="hive", exclude_invalid_files=True).to_table()
    return sorted(table.to_pylist(), key=lambda row: str(row["_item"]))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """FOLDER/log of a server that recorded two impressions and a click."""
    features = EventFeatures.of(CONFIG, 0.1, None, {"hour": "integer", "band": "integer"})

    def event(number: int, kind: Kind, at: int, **columns: Any) -> Event:
        return Event(id=f"{kind.name} {number}", kind=kind, at=at, user=f"u{number}", item=f"i{number}",
                     columns={"user": f"u{number}", "item": f"i{number}", "id": f"live{number}", **columns})

    with closing(EventStore(tmp_path, features, lambda: START, margin=1)) as store:
        store.record([[event(1, Kind.IMPRESSION, START - 20 * SECOND, slot=1, band=3),
                       event(2, Kind.IMPRESSION, START - 20 * SECOND, slot=2),
                       event(1, Kind.CLICK, START - 10 * SECOND)]])
        assert land(store, features, tmp_path / "log") == 3
    return tmp_path / "log"


def test_what_a_server_lands_is_read_by_its_bundles_configuration(spark: Any, data: Path, tmp_path: Path) -> None:
    out = Artifacts(tmp_path / "out")
    done = ingest(spark, CONFIG, data, out)
    assert (done.events, done.positives, done.quarantined) == (2, 1, 0)
    at = datetime.fromtimestamp((START - 20 * SECOND) / SECOND, UTC)
    found = [(row["_user"], row["_time"], row["_position"], row["hour"], row["band"], row["_label"])
             for row in rows(out)]
    assert found == [("u1", at, 1, at.hour, 3, 1.0), ("u2", at, 2, at.hour, None, 0.0)]
