"""One row of the response log: a call, what the server answered, at what prices, and by which bundle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate, chain
from typing import Any, Protocol

import pyarrow as pa

LOST = "LOST"


class Loggable(Protocol):
    """What stands for a row until it is written: it counts for `size` bytes and `calls` calls."""

    @property
    def calls(self) -> int: ...
    @property
    def size(self) -> int: ...
    def row(self) -> ResponseRecord: ...


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
    # Since 0.2; null in older files.
    pa.field("calls", pa.int64()),
    pa.field("context_lists", pa.map_(pa.string(), pa.list_(pa.string()))),
    pa.field("prices", pa.list_(pa.float64())),
    pa.field("bids", pa.list_(pa.float64())),
    pa.field("runner_ups", pa.list_(pa.string())),
    pa.field("to_beat", pa.list_(pa.float64())),
    pa.field("channels", pa.list_(pa.string())),
    pa.field("degraded", pa.bool_()),
    pa.field("stages", pa.list_(pa.string())),
    pa.field("stage_statuses", pa.list_(pa.string())),
    pa.field("stage_fallbacks", pa.list_(pa.string())),
    pa.field("stage_causes", pa.list_(pa.string())),
    pa.field("stage_microseconds", pa.list_(pa.int64())),
])
BASE_BYTES, ITEM_BYTES, STAGE_BYTES, CHARACTER_BYTES = 1200, 400, 100, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRecord:
    """`items` in the order shown, `positions` from 1; `propensities`: with what probability the server's policy puts
    the item at its place, 1 as long as the funnel draws nothing. `context` holds the request's values as text,
    `context_lists` those of fields with several of them; `microseconds` pass between arrival and answer.

    `status` is gRPC's, as far as the caller can have seen it; only OK, an answer that was sent, comes with items. LOST
    stands for calls of which nothing else is known. `calls` that the row stands for: 1; several where they were refused
    unread or lost; 0 for the second slate of a request and those after it.

    By item, None where there was no auction: `prices` and `bids` per click, `runner_ups` (empty: the reserve) whose
    eCPM is `to_beat`. `stages` of the funnel, with how each ended, what stood in for it and why.
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
    calls: int = 1
    context_lists: dict[str, list[str]] = field(default_factory=dict)
    prices: list[float | None] = field(default_factory=list)
    bids: list[float | None] = field(default_factory=list)
    runner_ups: list[str | None] = field(default_factory=list)
    to_beat: list[float | None] = field(default_factory=list)
    channels: list[str] = field(default_factory=list)
    degraded: bool = False
    stages: list[str] = field(default_factory=list)
    stage_statuses: list[str] = field(default_factory=list)
    stage_fallbacks: list[str] = field(default_factory=list)
    stage_causes: list[str] = field(default_factory=list)
    stage_microseconds: list[int] = field(default_factory=list)

    def row(self) -> ResponseRecord:
        """Itself; what is held for later makes one (serving/response_log/response_recorder.py)."""
        return self

    @property
    def day(self) -> str:
        """Of UTC, as in the folder's name."""
        return self.time.astimezone(UTC).date().isoformat()

    @property
    def size(self) -> int:
        """Bytes of memory that it may take at most, as texts of a few hundred characters go."""
        text = len(self.request_id) + len(self.user) + sum(map(len, chain(self.context, self.context.values())))
        text += sum(ITEM_BYTES + len(one) for values in self.context_lists.values() for one in values)
        return (BASE_BYTES + CHARACTER_BYTES * (text + sum(map(len, self.items))) + ITEM_BYTES * len(self.items)
                + STAGE_BYTES * len(self.stages))


def counted(status: str, calls: int, version: str, created: datetime) -> ResponseRecord:
    """A row, of now, for calls of which nothing else is known."""
    return ResponseRecord(
        request_id="", time=datetime.now(UTC), user="", context={}, items=[], positions=[], scores=[], probabilities=[],
        propensities=[], bundle_version=version, bundle_created=created, status=status, microseconds=0,
        calls=calls)


def to_batch(rows: Sequence[ResponseRecord]) -> pa.RecordBatch:
    """Rows of SCHEMA, in their order. Raises ArrowInvalid or TypeError for what a column cannot hold."""
    return pa.record_batch([_column([getattr(row, one.name) for row in rows], one.type) for one in SCHEMA],
                           schema=SCHEMA)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Lists are made of their values and offsets, several times faster than of Python's lists."""
    if pa.types.is_map(kind):
        keys, found = list(chain.from_iterable(values)), list(chain.from_iterable(one.values() for one in values))
        return pa.MapArray.from_arrays(_offsets(values), pa.array(keys, kind.key_type), _column(found, kind.item_type))
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(_offsets(values), pa.array(list(chain.from_iterable(values)), kind.value_type))
    return pa.array(values, kind)


def _offsets(values: Iterable[Sized]) -> pa.Array:
    return pa.array([0, *accumulate(map(len, values))], pa.int32())

