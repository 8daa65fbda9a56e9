"""What a log must be before its events are published; each check fires."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from contracts.config.config import Config
from contracts.config.log import Log
from contracts.errors import DataError, EmptyLogError, OneClassError, SchemaError
from pipelines.ingest.event_checks import DayFigures, check_accounted, check_classes, check_readable, figures_of_days
from pipelines.ingest.quarantine import Counts
from pipelines.ingest.roles import unusable

CONFIG = Config.model_validate({
    "name": "t", "log": {"path": "p", "user_id": "u"}, "label": {"expression": "y"},
    "fields": [{"name": "x", "kind": "categorical", "side": "context"}],
})


def test_a_log_without_rows_or_without_a_readable_time_is_refused() -> None:
    log = Log(path="p", event_time="t")
    check_readable(log, Counts(3, {unusable("t"): 2}), "p", None)
    with pytest.raises(EmptyLogError, match="no rows of 2026-01-05 at p"):
        check_readable(log, Counts(0, {}), "p", "2026-01-05")
    with pytest.raises(SchemaError, match="column 't' holds no timestamp of the years 1000 to 9998 in any row"):
        check_readable(log, Counts(3, {unusable("t"): 3}), "p", None)


def test_every_row_is_an_event_a_duplicate_or_in_quarantine() -> None:
    check_accounted(rows_in=6, events=3, duplicates=2, quarantined=1, quarantine=Path("bad"))
    with pytest.raises(DataError, match="6 rows came in, but 3 events, 2 duplicates and 0 quarantined rows came out"):
        check_accounted(rows_in=6, events=3, duplicates=2, quarantined=0, quarantine=Path("bad"))
    with pytest.raises(EmptyLogError, match="all 2 rows are malformed; see bad"):
        check_accounted(rows_in=2, events=0, duplicates=0, quarantined=2, quarantine=Path("bad"))


def events(spark: SparkSession, *rows: tuple[str, str, float]) -> DataFrame:
    return spark.createDataFrame(list(rows), "day string, _user string, _label float")


def test_events_are_counted_by_day_in_order(spark: SparkSession) -> None:
    rows = [("2026-01-06", "u", 1.0), ("2026-01-05", "u", 0.0), ("2026-01-06", "v", 0.0)]
    assert list(figures_of_days(events(spark, *rows), CONFIG).items()) == [
        ("2026-01-05", DayFigures(1, 0, ("u", "u"))), ("2026-01-06", DayFigures(2, 1, ("u", "v")))]


def test_one_label_or_one_user_teaches_nothing() -> None:
    check_classes(CONFIG, {"a": DayFigures(1, 1, ("u", "u")), "b": DayFigures(1, 0, ("v", "v"))})
    for positives in (0, 2):
        with pytest.raises(OneClassError, match=f"all 2 events have label {positives // 2}"):
            check_classes(CONFIG, {"all": DayFigures(2, positives, ("u", "v"))})
    with pytest.raises(OneClassError, match="of the single user 'u'"):
        check_classes(CONFIG, {"all": DayFigures(2, 1, ("u", "u"))})
