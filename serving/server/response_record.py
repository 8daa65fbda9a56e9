"""One row of the response log: a request, what the server answered and by which bundle."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime

import pyarrow as pa

SCHEMA = pa.schema([
    pa.field("request_id", pa.string(), nullable=False),
    pa.field("time", pa.timestamp("us", "UTC"), nullable=False),
    pa.field("user", pa.string(), nullable=False),
    pa.field("context", pa.map_(pa.string(), pa.string()), nullable=False),
    pa.field("items", pa.list_(pa.string()), nullable=False),
    pa.field("positions", pa.list_(pa.int32()), nullable=False),
    pa.field("scores", pa.list_(pa.float64()), nullable=False),
    pa.field("probabilities", pa.list_(pa.float64()), nullable=False),
    pa.field("propensities", pa.list_(pa.float64()), nullable=False),
    pa.field("bundle_version", pa.string(), nullable=False),
    pa.field("bundle_created", pa.timestamp("us", "UTC"), nullable=False),
    pa.field("status", pa.string(), nullable=False),
    pa.field("microseconds", pa.int64(), nullable=False),
])


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRecord:
    """`items` in the order shown, `positions` from 1; `propensities`: with what probability the server's policy puts
    the item at its place, 1 as long as the funnel draws nothing. `status` is gRPC's; only OK comes with items.
    `context` holds the request's values as text, `microseconds` pass between arrival and answer.
    """

    request_id: str
    time: datetime
    user: str
    context: dict[str, str]
    items: list[str]
    positions: list[int]
    scores: list[float]
    probabilities: list[float]
    propensities: list[float]
    bundle_version: str
    bundle_created: datetime
    status: str
    microseconds: int

    @property
    def day(self) -> str:
        """Of UTC, as in the folder's name."""
        return self.time.astimezone(UTC).date().isoformat()

    @property
    def size(self) -> int:
        """What it counts for in memory: its items and itself."""
        return 1 + len(self.items)


def to_table(rows: list[ResponseRecord]) -> pa.Table:
    """Rows of SCHEMA, in their order."""
    columns = {field.name: [getattr(row, field.name) for row in rows] for field in fields(ResponseRecord)}
    columns["context"] = [list(context.items()) for context in columns["context"]]
    return pa.table(columns, schema=SCHEMA)
