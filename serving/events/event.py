"""One event as it is kept: what happened, to whom, when, and when the server learned of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from functools import lru_cache
from json.encoder import encode_basestring

from serving.request.query import ContextValue

Columns = Mapping[str, ContextValue]
DAY = 86_400_000_000  # microseconds
ENCODER = json.JSONEncoder(ensure_ascii=False)


class Kind(IntEnum):
    """As in the proto."""

    IMPRESSION = 1
    CLICK = 2
    CONVERSION = 3


@dataclass(frozen=True, kw_only=True)
class Event:
    """`at` in microseconds since 1970, None: when it is recorded. `columns` are those of the log, by their names there,
    times aside."""

    id: str
    kind: Kind
    at: int | None
    user: str
    item: str
    columns: Columns


def link(columns: Columns, on: Sequence[str]) -> str:
    """What joins a click to its impression: the `label.clicks.on` columns as text, as the pipelines compare them."""
    return _texts(columns, on)


def identity(columns: Columns, key: Sequence[str], at: int) -> str:
    """What makes two rows of the log one impression: its key and its day."""
    return f"{day(at)} {_texts(columns, key)}"


def day(at: int) -> str:
    """YYYY-MM-DD, UTC."""
    return _day(at // DAY)


@lru_cache(maxsize=64)
def _day(number: int) -> str:
    return datetime.fromtimestamp(number * 86_400, UTC).date().isoformat()


def encoded(columns: Columns | Sequence[object]) -> str:
    """As JSON."""
    return ENCODER.encode(columns)


def _texts(columns: Columns, names: Sequence[str]) -> str:
    """A list of texts as JSON: what `json.dumps` makes of it, without an encoder of its own for each event."""
    return f"[{', '.join([encode_basestring(as_text(columns[name])) for name in names])}]"


def as_text(value: ContextValue) -> str:
    """As the pipelines compare values of keys."""
    return str(value).lower() if isinstance(value, bool) else str(value)
