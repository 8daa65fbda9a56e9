from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.errors import WindowError
from pipelines.features.prior_rate import prior_of_run, statistics_window
from tests.pipelines.ingested_log import START, event, write_ingested

RATE: dict[str, Any] = {"name": "seen", "kind": "counter", "side": "user", "by": ["uid"], "windows": ["1d"]}
HOUR_TO_CLICK = {"clicks": {"path": "clicks", "on": ["uid"], "window": "1h"}}


def config(**field: Any) -> Config:
    log = {"path": "log", "user_id": "uid", "event_time": "time"}
    return Config.model_validate({"name": "t", "log": log, "label": HOUR_TO_CLICK, "fields": [RATE | field]})


def prior(spark: SparkSession, out: Artifacts, refit: bool = True, **field: Any) -> float:
    return prior_of_run(spark, config(**field), out, refit)


def test_only_labels_closed_inside_the_statistics_window_count(spark: SparkSession, tmp_path: Path) -> None:
    log = [
        event(1, 1, clicked=1.5),
        event(2, 1),
        event(3, 2, clicked=30),  # the click is learned after the window: an impression without a click, as yet
        event(4, 23.5, clicked=23.6),  # closes after the window
        event(5, 25, clicked=25.5),  # after the window
        event(6, 1),
    ]
    out = write_ingested(Artifacts(tmp_path), log)
    assert statistics_window(out, "rate counters") == (START, START + timedelta(days=1))
    assert prior(spark, out) == pytest.approx(1 / 4)


def test_a_later_run_takes_the_stored_prior_unless_it_makes_everything_anew(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = write_ingested(Artifacts(tmp_path), [event(1, 1, clicked=2), event(2, 1)])
    assert prior(spark, out) == 0.5
    write_ingested(out, [event(1, 1), event(2, 1)])
    assert prior(spark, out, refit=False) == 0.5
    assert prior(spark, out) == 0.0


def test_a_window_without_closed_labels_is_refused_unless_no_rate_is_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = write_ingested(Artifacts(tmp_path), [event(1, 23.5), event(2, 48)])
    with pytest.raises(WindowError, match="statistics window"):
        prior(spark, out)
    assert prior(spark, out, statistics=["count"]) == 0.0
    out.windows.write_text("{}", encoding="utf-8")
    with pytest.raises(WindowError, match="has none"):
        prior(spark, out)
