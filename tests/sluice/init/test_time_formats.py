from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from sluice.init.time_formats import time_expression


@pytest.mark.parametrize(
    ("values", "expression"),
    [
        (["2026-01-05 10:30:00.5", "2026-02-05T10:30:00Z"], "try_to_timestamp(x)"),
        (["2026-01-05", "2025-12-31"], "try_to_timestamp(x)"),
        (["31/12/2025 9:05", "01/02/2026 19:05"], "try_to_timestamp(x, 'd/M/yyyy H:mm')"),
        (["12/31/2025", "02/01/2026"], "try_to_timestamp(x, 'M/d/yyyy')"),
        (["5.1.2026 10:30:59", "6.1.2026 11:30:59"], "try_to_timestamp(x, 'd.M.yyyy H:mm:ss')"),
        (["2026/1/5"], "try_to_timestamp(x, 'yyyy/M/d')"),
        (["05-Jan-2026"], "try_to_timestamp(x, 'd-MMM-yyyy')"),
        (["20260105", "20251231"], "try_to_timestamp(CAST(x AS STRING), 'yyyyMMdd')"),
        (["14102100", "14103023"], "try_to_timestamp(CAST(x AS STRING), 'yyMMddHH')"),
        (["20260105103000"], "try_to_timestamp(CAST(x AS STRING), 'yyyyMMddHHmmss')"),
        (["881250949", "891717742"], "timestamp_seconds(try_cast(x AS BIGINT))"),
        (["2017-11-07 9:30", "2017-11-07 19:30"], "try_to_timestamp(x, 'yyyy-M-d H:mm')"),
        (["11/7/2017 9:30 PM", "11/17/2017 9:30 AM"], "try_to_timestamp(x, 'M/d/yyyy h:mm a')"),
        (["11/7/17 9:30", "11/17/17 10:30"], "try_to_timestamp(x, 'M/d/yy H:mm')"),
        (["Nov 7, 2017 9:30:05", "Nov 17, 2017 19:30:05"], "try_to_timestamp(x, 'MMM d, yyyy H:mm:ss')"),
        (["7 November 2017", "17 March 2018"], "try_to_timestamp(x, 'd MMMM yyyy')"),
        (["07/Nov/2017:09:30:38 +0000", "08/Nov/2017:19:30:38 +0000"],
         "try_to_timestamp(x, 'd/MMM/yyyy:H:mm:ss Z')"),
        (["2019-10-01 00:00:00 UTC", "2019-10-02 10:00:00 UTC"], "try_to_timestamp(x)"),
        (["1510046999.123", "1510047999.5"], "timestamp_millis(try_cast(try_cast(x AS DOUBLE) * 1000 AS BIGINT))"),
        (["1510046999123456", "1510047999123456"], "timestamp_micros(try_cast(x AS BIGINT))"),
        (["1767600000000", "1767700000000"], "timestamp_millis(try_cast(x AS BIGINT))"),
        (["1767600000000.0", "1767700000000.0"],
         "timestamp_millis(try_cast(try_cast(try_cast(x AS DOUBLE) AS BIGINT) AS BIGINT))"),
    ],
)
def test_each_way_of_writing_a_time_has_its_expression(values: list[str], expression: str) -> None:
    found = time_expression("x", "event_time", values, named=True)
    assert found is not None
    assert found.expression == expression


def test_a_day_that_might_be_a_month_is_called_a_guess() -> None:
    found = time_expression("x", "when", ["01/02/2026", "03/04/2026"], named=True)
    assert found is not None
    assert "guess" in found.why


def month_first(days: int) -> list[str]:
    """Nine moments of each of so many days."""
    return [f"{datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day, minutes=160 * part):%m/%d/%Y %H:%M}"
            for day in range(days) for part in range(9)]


def test_a_log_in_order_of_time_is_looked_at_as_a_whole() -> None:
    start = datetime(2026, 2, 1, tzinfo=UTC)
    minutes = [f"{start + timedelta(minutes=6 * part):%m/%d/%Y %H:%M}" for part in range(9000)]
    found = time_expression("x", "when", minutes, named=True)
    assert found is not None
    assert (found.expression, "guess" in found.why) == ("try_to_timestamp(x, 'M/d/yyyy H:mm')", False)


@pytest.mark.parametrize(("values", "layout"), [
    (month_first(12), "M/d/yyyy H:mm"), (month_first(12)[::-1], "M/d/yyyy H:mm"),  # in order under one reading
    ([value for part in range(9) for value in month_first(12)[part::9]][::-5], "M/d/yyyy H:mm"),  # twelve days
    ([f"{value[3:6]}{value[:3]}{value[6:]}" for value in month_first(12)], "d/M/yyyy H:mm"),
    (["01.02.2026", "01.03.2026", "01.04.2026"], "d.M.yyyy"),
])
def test_where_day_and_month_may_change_places_the_likelier_order_is_a_guess(values: list[str], layout: str) -> None:
    found = time_expression("x", "when", values, named=True)
    assert found is not None
    first = "month before day" if layout.startswith("M") else "day before month"
    assert (found.expression, f"{first} is a guess" in found.why) == (f"try_to_timestamp(x, '{layout}')", True)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("amount", ["881250949", "891717742"]),  # its name says nothing of a time
        ("time", ["12", "13"]),
        ("date", ["20269999", "20260105"]),
        ("version", ["1.2.17", "1.3.18"]),
        ("ip", ["10.2.17.4", "10.3.18.9"]),
        ("colours", ["May red", "May blue"]),
        ("time", ["10:30", "11:45"]),
        ("time", []),
        ("time", ["2026-01-05", "soon", "later"]),
    ],
)
def test_other_values_are_no_times(name: str, values: list[str]) -> None:
    assert time_expression("x", name, values, named=True) is None


@pytest.mark.parametrize(("layout", "expected"), [
    ("01/{month:02d}/{year}", "d/M/yyyy"), ("{month:02d}/01/{year}", "M/d/yyyy")])
def test_the_first_of_months_over_years_is_not_january(layout: str, expected: str) -> None:
    values = [layout.format(month=1 + month % 12, year=2022 + month // 12) for month in range(30)]
    found = time_expression("x", "when", values, named=True)
    assert found is not None
    assert found.expression == f"try_to_timestamp(x, '{expected}')"


def test_numbers_below_0_among_times_are_none(spark: SparkSession) -> None:
    values = [*(str(1_767_600_000 + row) for row in range(99)), "-1"]
    found = time_expression("x", "ts", values, named=True)
    assert found is not None
    read = spark.createDataFrame([(value,) for value in values[-2:]], "x STRING").selectExpr(
        f"unix_millis({found.expression}) AS ms")
    assert [row.ms for row in read.collect()] == [1_767_600_098_000, None]
    assert found.read("-1") is None


def test_seconds_in_a_file_without_names_are_told_by_their_size() -> None:
    assert time_expression("c3", "c3", ["881250949", "891717742"], named=False) is not None


@pytest.mark.parametrize(("week", "day"), [("2026-W01", "2025-12-29"), ("2026W015", "2026-01-02"),
                                           ("2020-W53-7", "2021-01-03")])
def test_weeks_are_read_as_their_day(week: str, day: str) -> None:
    found = time_expression("x", "woche", [week, week], named=True)
    assert found is not None
    assert found.read(week) == datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    assert not found.clock


@pytest.mark.parametrize("written", [
    "2017-11-07 9:30", "2017-11-07T09:30:00Z", "7.11.2017 9:30", "11/17/2017 9:30 AM", "Nov 7, 2017 9:30",
    "07/Nov/2017:09:30:00 +0000", "20171107093000", "1510047000", "1510047000000",
])
def test_the_samples_own_reader_agrees(written: str) -> None:
    found = time_expression("x", "event_time", [written, written.replace("9:30", "9:31")], named=True)
    if written.isdigit():
        found = time_expression("x", "event_time", [written, str(int(written) + 100)], named=True)
    assert found is not None
    later = 10 * 86_400 if written.startswith("11/17") else 0
    assert found.read(written) == 1_510_047_000 + later
    assert found.clock


def test_a_zone_behind_minutes_is_read_as_one_behind_seconds_is(spark: SparkSession) -> None:
    cells = ["2026-01-05T10:30Z", "2026-01-05T10:30:05Z", "2026-01-05 10:30+01:00", "2026-01-05T10:30:05.5-0230",
             "2026-01-05 10:30 UTC", "2026-01-05T10:30", "2026-01-05", "2026-01-05T10:30+0100"]
    found = time_expression("x", "ts", cells, named=True)
    assert found is not None
    rows = [(cell,) for cell in (*cells, "ts")]
    read = spark.createDataFrame(rows, "x string").selectExpr(f"unix_micros({found.expression}) AS t").collect()
    assert [None if row.t is None else row.t / 1e6 for row in read] == [*map(found.read, cells), None]


@pytest.mark.parametrize("cells", [
    ["881250949", "891717742"], ["1767600000000", "1767700000000"], ["1510046999123456", "1510047999123456"],
    ["1510046999.5", "1510047999.25"], ["1767600000000.0", "1767700000000.0"],
])
def test_a_cell_that_is_no_time_is_missing_alone(cells: list[str], spark: SparkSession) -> None:
    found = time_expression("x", "ts", [*cells * 40, "ts"], named=True)
    assert found is not None
    assert found.read("ts") is None
    rows = [(cell,) for cell in (*cells, "ts", "", "N/A", "9" * 30)]
    read = spark.createDataFrame(rows, "x string").selectExpr(f"unix_micros({found.expression}) AS t")
    seconds = [None if row.t is None else row.t / 1e6 for row in read.collect()]
    assert seconds == [*map(found.read, cells), None, None, None, None]
