from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from contracts.errors import ConfigError
from contracts.features.event_clock import SECOND, Measure
from pipelines.features.measures import changes_at, counts_by, entered_measures, enters, has_entered


def test_columns_are_named_for_event_and_window() -> None:
    assert (Measure("shown", 30).column, Measure("shown", 30).exit) == ("_shown_30", "_exit_30")
    assert Measure("clicked", None).column == "_clicked_all"


@pytest.mark.parametrize(("window", "click", "ever", "counts"), [
    (30, 29, True, [False, True, False]), (30, 30, False, [False] * 3), (None, 99, True, [False] * 3),
    (30, None, False, [False] * 3), (None, 29, True, [False, True, True]),
])
def test_an_event_counts_from_its_time_until_the_impression_is_too_old(
    spark: SparkSession, window: int | None, click: int | None, ever: bool, counts: list[bool]
) -> None:
    """An impression of second 0, asked at 28, 29 and 30 seconds."""
    row = (0, 1, 1, None if click is None else click * SECOND)
    frame = spark.createDataFrame([row], "_at bigint, _enter bigint, _close bigint, _click bigint")
    measure = Measure("clicked", window)
    found = frame.select(enters(measure), *[counts_by(measure, t * SECOND).alias(str(t)) for t in (28, 29, 30)]).first()
    assert list(found or ()) == [ever, *counts]


def test_one_number_tells_in_which_measures_an_impression_counts(spark: SparkSession) -> None:
    """Shown at second 0, clicked at 29: too late for the second measure."""
    measures = [Measure("shown", 30), Measure("clicked", 20), *(Measure("clicked", 30 + k) for k in range(60))]
    frame = spark.createDataFrame([(0, 1, 1, 29 * SECOND)], "_at bigint, _enter bigint, _close bigint, _click bigint")
    entered = np.array([frame.select(entered_measures(measures)).collect()[0][0]])
    assert [bool(has_entered(entered, place)[0]) for place in range(62)] == [place != 1 for place in range(62)]
    with pytest.raises(ConfigError, match="make 63 measures, 62 at most"):
        entered_measures([*measures, Measure("closed", 30)])


def test_a_measure_grows_at_its_event_and_shrinks_when_the_impression_is_too_old() -> None:
    shown, clicked, ever = Measure("shown", 30), Measure("clicked", 30), Measure("clicked", None)
    assert changes_at([shown, clicked, ever]) == {
        "_enter": {shown: 1}, "_click": {clicked: 1, ever: 1}, "_exit_30": {shown: -1, clicked: -1}}
