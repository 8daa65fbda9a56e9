"""Known answers; the comparison with the definition on random logs is in test_history_features.py."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.errors import SchemaError
from pipelines.features.sequences import HISTORY, last_clicked
from pipelines.windows.publish_clock import PublishClock

CLICKS = [  # row, user, event time, learned, value
    (1, "u", 1, 9, "late"),
    (2, "u", 2, 4, "first"),
    (3, "u", 3, 5, "second"),
    (4, "u", 3, 6, None),
    (5, "u", 3, None, "never clicked"),
    (6, None, 1, 1, "nobody's"),
    (7, "v", 1, 1, "other"),
]


@pytest.fixture
def clicks(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(CLICKS, "_row bigint, _user string, _at bigint, _learned bigint, value string")


def histories(
    clicks: DataFrame, length: int, period: int, *queries: tuple[str | None, int]
) -> dict[int, list[str] | None]:
    asked = clicks.sparkSession.createDataFrame(
        [(i, *q) for i, q in enumerate(queries)], "id bigint, _user string, _at bigint"
    )
    found = last_clicked(clicks, asked, F.col("value"), length, PublishClock(period), "id").collect()
    return {row["id"]: row[HISTORY] for row in found}


def test_newest_first_in_the_order_in_which_clicks_are_learned(clicks: DataFrame) -> None:
    found = histories(clicks, 2, 1, ("u", 3), ("u", 4), ("u", 5), ("u", 8), ("u", 9))
    assert found == {0: None, 1: ["first"], 2: ["second", "first"], 3: ["second", "first"], 4: ["late", "second"]}


def test_a_publish_orders_its_clicks_by_event_time(clicks: DataFrame) -> None:
    found = histories(clicks, 3, 10, ("u", 9), ("u", 10), ("u", 19))
    assert found == {0: None, 1: ["second", "first", "late"], 2: ["second", "first", "late"]}


def test_other_users_unknown_users_and_nobody(clicks: DataFrame) -> None:
    assert histories(clicks, 3, 1, ("v", 100), ("w", 100), (None, 100)) == {0: ["other"], 1: None}


def test_impressions_without_the_time_of_learning_are_refused(clicks: DataFrame) -> None:
    with pytest.raises(SchemaError, match="_learned"):
        last_clicked(clicks.drop("_learned"), clicks, F.col("value"), 1, PublishClock(1), "_row")
