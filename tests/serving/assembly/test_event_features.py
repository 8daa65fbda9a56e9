from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import PUBLISHED_AT, READ_UNTIL, Artifacts
from contracts.atomic_write import write_json
from contracts.config.fields import FieldConfig
from contracts.features.event_features import EventFeatures
from serving.assembly.event_features import write_event_features
from tests.serving.recorded_events import recorded_config


@pytest.mark.parametrize("named", [READ_UNTIL, PUBLISHED_AT])
def test_it_holds_prior_columns_and_moment_of_the_run(tmp_path: Path, named: str) -> None:
    out, published = Artifacts(tmp_path / "out"), datetime(2026, 1, 6, tzinfo=UTC)
    for folder in (out.events / "day=2026-01-05", out.online_users, out.items):
        folder.mkdir(parents=True)
    pq.write_table(pa.table({"_row": [1], "place": ["a"], "age": [3], "price": [0.5], "new": [True], "tags": [["a"]],
                             "hour": [4]}), out.events / "day=2026-01-05" / "part.parquet")
    pq.write_table(pa.table({named: pa.array([published], pa.timestamp("us", "UTC"))}),
                   out.online_users / "part.parquet")
    pq.write_table(pa.table({"_item": ["i"], "shop": ["s"]}), out.items / "part.parquet")
    write_json(out.prior, {"prior_rate": 0.25})
    of_shop = {"name": "of_shop", "kind": "counter", "side": "item", "by": ["shop"], "windows": [60]}
    config = recorded_config()
    fields = (*config.fields, FieldConfig.model_validate(of_shop))
    write_event_features(config.model_copy(update={"fields": fields}), out, tmp_path)
    found = EventFeatures.read(tmp_path)
    assert found is not None
    assert (found.prior, found.published) == (0.25, published)
    assert [field.name for field in found.groups] == ["of_shop"]
    assert found.columns == {"place": "text", "age": "integer", "price": "number", "new": "flag", "tags": "list"}


def test_a_run_without_rates_or_tables_has_less_to_say(tmp_path: Path) -> None:
    write_event_features(recorded_config(), Artifacts(tmp_path / "out"), tmp_path)
    found = EventFeatures.read(tmp_path)
    assert found is not None
    assert (found.prior, found.published, found.columns) == (0.0, None, {})


def test_a_log_that_cannot_be_recorded_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = recorded_config()
    config = config.model_copy(update={"log": config.log.model_copy(update={"known_time": None})})
    with caplog.at_level(logging.INFO, "sluice.serving"):
        write_event_features(config, Artifacts(tmp_path / "out"), tmp_path)
    assert EventFeatures.read(tmp_path) is None
    assert "log.known_time is not set" in caplog.text


def test_a_log_whose_key_tells_the_time_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config, key = recorded_config(), ("request", "iid", "hour")
    clicks = {"clicks": config.label.clicks.model_copy(update={"on": key})} if config.label.clicks else {}
    config = config.model_copy(update={"log": config.log.model_copy(update={"key": key}),
                                       "label": config.label.model_copy(update=clicks)})
    with caplog.at_level(logging.WARNING, "sluice.serving"):
        write_event_features(config, Artifacts(tmp_path / "out"), tmp_path)
    assert EventFeatures.read(tmp_path) is None
    assert "'hour' of label.clicks.on and log.key" in caplog.text


def test_a_log_whose_kinds_of_events_would_share_a_folder_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = recorded_config()
    config = config.model_copy(update={"log": config.log.model_copy(update={"path": "s3a://bucket/clicked"})})
    with caplog.at_level(logging.WARNING, "sluice.serving"):
        write_event_features(config, Artifacts(tmp_path / "out"), tmp_path)
    assert EventFeatures.read(tmp_path) is None
    assert "both landed in the folder 'clicked'" in caplog.text
