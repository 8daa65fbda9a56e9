"""The log's schema and its record are one."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timedelta, timezone

from serving.server.response_record import SCHEMA, ResponseRecord, to_table
from tests.serving.logged_responses import NOON, response


def test_the_schema_has_the_records_columns_in_their_order() -> None:
    assert SCHEMA.names == [field.name for field in fields(ResponseRecord)]
    assert not any(field.nullable for field in SCHEMA)


def test_rows_become_a_table_and_come_back() -> None:
    rows = [response(1), response(2, items=0)]
    table = to_table(rows)
    assert table.schema.equals(SCHEMA)
    assert [ResponseRecord(**{**row, "context": dict(row["context"])}) for row in table.to_pylist()] == rows


def test_no_rows_are_an_empty_table_of_the_schema() -> None:
    assert to_table([]).schema.equals(SCHEMA)


def test_the_day_is_that_of_utc() -> None:
    late = datetime(2026, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert (response(1, NOON).day, response(1, late).day) == ("2026-03-01", "2026-03-02")


def test_size_counts_the_items_and_the_answer_itself() -> None:
    assert (response(1, items=3).size, response(1, items=0).size) == (4, 1)
