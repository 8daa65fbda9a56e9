"""Rows of a response log with known content."""

from __future__ import annotations

from datetime import UTC, datetime

from serving.server.response_record import ResponseRecord

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def response(number: int, moment: datetime = NOON, items: int = 3) -> ResponseRecord:
    """Request `r{number}` of user u1, answered with `items` items."""
    return ResponseRecord(
        request_id=f"r{number}", time=moment, user="u1", context={"device": "phone"},
        items=[f"i{n}" for n in range(items)], positions=list(range(1, items + 1)), scores=[2.0] * items,
        probabilities=[0.1] * items, propensities=[1.0] * items, bundle_version="market-1", bundle_created=NOON,
        status="OK", microseconds=1500)
