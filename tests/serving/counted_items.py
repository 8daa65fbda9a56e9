"""The small marketplace as one whose items' number `price` is a counter of their events: how often each was shown
within a minute."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq

from contracts.bundle import bundle
from contracts.features.event_features import EventFeatures
from tests.serving.recorded_events import recorded_features

NUMBER, COUNTER, WINDOW = "price", "views_count_1m", 60


def counted_features() -> EventFeatures:
    """Of the log that is recorded, with no counter but that of items."""
    found = recorded_features()
    return found.model_copy(update={"counters": tuple(found.of_side("item"))})


def countable(folder: Path, made: Path) -> Path:
    """The bundle of `folder`, published again below `made` with that counter, whose events can be recorded."""
    draft = Path(shutil.copytree(folder, made / "draft"))
    (draft / bundle.MANIFEST).unlink()
    counted_features().write(draft)
    spec = json.loads((draft / "feature_spec.json").read_text("utf-8"))
    for field in spec["fields"]:
        field["name"] = COUNTER if field["name"] == NUMBER else field["name"]
    (draft / "feature_spec.json").write_text(json.dumps(spec), "utf-8")
    rows = pq.read_table(draft / "parity" / "rows.parquet")
    names = [name.replace(NUMBER, COUNTER) for name in rows.column_names]
    pq.write_table(rows.rename_columns(names), draft / "parity" / "rows.parquet")
    bundle.publish(draft, made / "bundle", "market")
    return made / "bundle"
