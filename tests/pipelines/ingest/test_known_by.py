"""The log as it stood when a day ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import LABEL, Artifacts
from contracts.config.config import Config
from pipelines.ingest.ingest import ingest
from pipelines.ingest.known_by import KnownBy

pytestmark = pytest.mark.every_engine
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def test_the_end_of_a_day_is_the_next_midnight_and_the_history_reaches_back_from_it() -> None:
    assert KnownBy.end_of("2026-02-28", None) == KnownBy(datetime(2026, 3, 1, tzinfo=UTC))
    assert KnownBy.end_of("2026-02-28", 86_400).start == datetime(2026, 2, 28, tzinfo=UTC)


def write(spark: SparkSession, folder, name: str, rows: list[tuple], columns: list[str]) -> None:
    spark.createDataFrame(rows, columns).write.mode("overwrite").parquet(f"{folder}/{name}")


def config(folder, history: str | None) -> Config:
    return Config.model_validate({
        "name": "loop",
        "log": {"path": f"{folder}/log", "user_id": "user", "item_id": "item", "event_time": "at",
                "known_time": "known", "request_id": "request", "key": ["request", "item"], "history": history},
        "label": {"clicks": {"path": f"{folder}/clicks", "on": ["request", "item"], "event_time": "at",
                             "known_time": "known"}},
        "fields": [{"name": "item", "kind": "categorical", "side": "item"}],
    })


@pytest.fixture
def log(spark: SparkSession, tmp_path):
    """Two impressions a day from March 1 to 4. Those named r are clicked an hour later, as s0 is; the click on r0 is
    learned on March 3, the impression r1 on March 4."""
    shown = [(f"r{n}", f"u{n}", "a", NOON + n * DAY, NOON + n * DAY + (2 * DAY if n == 1 else timedelta()))
             for n in range(4)]
    clicks = [(f"r{n}", "a", NOON + n * DAY + HOUR, NOON + n * DAY + HOUR + (2 * DAY if n == 0 else timedelta()))
              for n in range(4)]
    clicks.append(("s0", "b", NOON + HOUR, NOON + HOUR))
    shown += [(f"s{n}", f"v{n}", "b", NOON + n * DAY, NOON + n * DAY) for n in range(4)]
    write(spark, tmp_path, "log", shown, ["request", "user", "item", "at", "known"])
    write(spark, tmp_path, "clicks", clicks, ["request", "item", "at", "known"])
    return tmp_path


def rows(spark: SparkSession, folder, until: str | None, history: str | None = None) -> dict[str, float]:
    out = Artifacts(folder / f"out-{until}-{history}")
    ingest(spark, config(folder, history), None, out, until=until)
    return {row["_request"]: row[LABEL] for row in spark.read.parquet(str(out.events)).collect()}


def test_what_became_known_later_is_not_there_yet(spark: SparkSession, log) -> None:
    assert rows(spark, log, "2026-03-02") == {"r0": 0.0, "s0": 1.0, "s1": 0.0}
    assert rows(spark, log, "2026-03-03") == {"r0": 1.0, "r2": 1.0, "s0": 1.0, "s1": 0.0, "s2": 0.0}
    assert set(rows(spark, log, "2026-03-04")) == set(rows(spark, log, None))


def test_the_history_bounds_what_is_read(spark: SparkSession, log) -> None:
    assert set(rows(spark, log, "2026-03-03", "1d")) == {"r2", "s2"}
