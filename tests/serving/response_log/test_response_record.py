"""The log's schema and its record are one."""

from __future__ import annotations

import tracemalloc
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

from serving.response_log.response_record import LOST, SCHEMA, ResponseRecord, counted, to_batch
from tests.serving.logged_responses import NOON, response


def test_the_schema_has_the_records_columns_in_their_order() -> None:
    assert SCHEMA.names == [field.name for field in fields(ResponseRecord)]


def test_rows_become_a_table_and_come_back() -> None:
    rows = [response(1), replace(response(2, items=0), context_lists={"moods": ["calm", "late"], "none": []})]
    table = to_batch(rows)
    assert table.schema.equals(SCHEMA)
    maps = [{name: dict(row[name]) for name in ("context", "context_lists")} for row in table.to_pylist()]
    assert [ResponseRecord(**{**row, **held}) for row, held in zip(table.to_pylist(), maps, strict=True)] == rows


def test_no_rows_are_an_empty_table_of_the_schema() -> None:
    assert to_batch([]).schema.equals(SCHEMA)


def test_the_day_is_that_of_utc() -> None:
    late = datetime(2026, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert (response(1, NOON).day, response(1, late).day) == ("2026-03-01", "2026-03-02")


def test_size_grows_with_all_that_a_request_may_make_long() -> None:
    plain = response(1)
    longer = [replace(plain, user="u" * 1000), replace(plain, request_id="r" * 1000), response(1, items=9),
              replace(plain, context={"note": "x" * 1000}), replace(plain, items=["i" * 1000, "b", "c"])]
    assert all(row.size > plain.size + 900 for row in longer)


@pytest.mark.slow
def test_size_is_no_less_than_what_is_held() -> None:
    """Thousand rows, each made of values of its own."""
    tracemalloc.start()
    try:
        rows = [response(number, items=10) for number in range(1000)]
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < sum(row.size for row in rows)


def test_what_a_column_cannot_hold_is_refused() -> None:
    with pytest.raises((pa.ArrowException, TypeError)):
        to_batch([replace(response(1), scores=["much"] * 3)])  # type: ignore[list-item]


def test_calls_without_a_row_of_their_own_are_one_row() -> None:
    row = counted(LOST, 7, "shop-1", NOON)
    assert (row.status, row.calls, row.bundle_version, row.items) == ("LOST", 7, "shop-1", [])
    assert to_batch([row]).to_pylist()[0]["calls"] == 7
