"""Known answers; the comparison with the definition on random logs is in test_history_features.py."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.errors import SchemaError
from pipelines.features.running_counters import MOMENT
from pipelines.features.sequences import HISTORY, last_clicked
from pipelines.windows.publish_clock import PublishClock
from tests.pipelines.features.ordered_clicks import NEWEST_FIRST, ordered_lists

CLICKS = [  # row, user, event time, clicked, learned, value
    (1, "u", 1, 2, 9, "late"),
    (2, "u", 2, 3, 4, "first"),
    (3, "u", 3, 4, 5, "second"),
    (4, "u", 3, 4, 6, None),
    (5, "u", 3, None, None, "never clicked"),
    (6, None, 1, 1, 1, "nobody's"),
    (7, "v", 1, 1, 1, "other"),
]


@pytest.fixture
def clicks(spark: SparkSession) -> DataFrame:
    schema = "_row bigint, _user string, _at bigint, _clicked_at bigint, _learned bigint, value string"
    return spark.createDataFrame(CLICKS, schema)


def histories(
    clicks: DataFrame, length: int, period: int, *queries: tuple[str | None, int], most: int | None = None
) -> dict[int, list[str] | None]:
    asked = clicks.sparkSession.createDataFrame(
        [*queries], "_user string, _at bigint"
    )
    found = last_clicked(clicks, asked, F.col("value"), length, PublishClock(period), most).collect()
    by_query = {(row["_user"], row[MOMENT]): row[HISTORY] for row in found}
    return {i: by_query.get((user, at // period * period)) for i, (user, at) in enumerate(queries)}


def test_newest_click_first_of_those_that_are_known(clicks: DataFrame) -> None:
    found = histories(clicks, 3, 1, ("u", 3), ("u", 4), ("u", 5), ("u", 8), ("u", 9))
    known = ["second", "first"]
    assert found == {0: [], 1: ["first"], 2: known, 3: known, 4: ["second", "first", "late"]}


def test_further_lists_go_beside_with_their_nulls(clicks: DataFrame) -> None:
    asked = clicks.sparkSession.createDataFrame([("u", 9)], "_user string, _at bigint")
    beside = {"at": F.col("_clicked_at"), "odd": F.when(F.col("_row") != 2, F.col("_row").cast("string"))}
    (row,) = last_clicked(clicks, asked, F.col("value"), 5, PublishClock(1), beside=beside).collect()
    assert (row[HISTORY], row["at"], row["odd"]) == (["second", "first", "late"], [4, 3, 2], ["3", None, "1"])


def test_the_newest_are_kept(clicks: DataFrame) -> None:
    assert histories(clicks, 2, 1, ("u", 9), ("v", 9)) == {0: ["second", "first"], 1: ["other"]}


def test_the_order_is_the_clicks_time_then_when_it_was_learned_then_the_impressions_time_then_its_row(
    spark: SparkSession,
) -> None:
    """On Apache Spark: tests/sluice/test_engines_agree.py."""
    assert ordered_lists(spark) == [list(NEWEST_FIRST)] * 4


def test_a_publish_shows_what_it_knew(clicks: DataFrame) -> None:
    found = histories(clicks, 3, 10, ("u", 9), ("u", 10), ("u", 19))
    assert found == {0: [], 1: ["second", "first", "late"], 2: ["second", "first", "late"]}


@pytest.mark.parametrize("period", [1, 4, 10])
def test_a_user_of_more_clicks_than_a_task_holds_has_the_same_lists(clicks: DataFrame, period: int) -> None:
    queries = [("u", 5), ("u", 9), ("u", 12), ("v", 9), ("v", 20)]
    for length in (1, 2):
        assert histories(clicks, length, period, *queries, most=1) == histories(clicks, length, period, *queries)


def test_other_users_unknown_users_and_nobody(clicks: DataFrame) -> None:
    assert histories(clicks, 3, 1, ("v", 100), ("w", 100), (None, 100)) == {0: ["other"], 1: [], 2: None}


def test_impressions_without_the_time_of_learning_are_refused(clicks: DataFrame) -> None:
    with pytest.raises(SchemaError, match="_learned"):
        last_clicked(clicks.drop("_learned"), clicks, F.col("value"), 1, PublishClock(1))
