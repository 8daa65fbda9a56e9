"""Rows of a response log with known content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from serving.response_log.response_record import ResponseRecord

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def logged(
    request_id: str, items: Sequence[str], *, time: datetime = NOON, user: str = "u1",
    context: Mapping[str, str] | None = None, probabilities: Sequence[float] | None = None,
    version: str = "market-1", created: datetime = NOON, status: str = "OK", microseconds: int = 900,
) -> ResponseRecord:
    """`items` shown from position 1 on; each with the probability 0.1 where none are given."""
    return ResponseRecord(
        request_id=request_id, time=time, user=user, context=dict(context or {}), items=list(items),
        positions=list(range(1, len(items) + 1)), scores=[1.0] * len(items),
        probabilities=[0.1] * len(items) if probabilities is None else list(probabilities),
        propensities=[1.0] * len(items), prices=[None] * len(items), bundle_version=version, bundle_created=created,
        status=status, microseconds=microseconds)


def response(number: int, moment: datetime = NOON, items: int = 3) -> ResponseRecord:
    """Request `r{number}` of user u1, answered with `items` items."""
    return logged(f"r{number}", [f"i{n}" for n in range(items)], time=moment, context={"device": "phone"})
