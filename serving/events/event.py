"""One event as it is kept: what happened, to whom, when, and when the server learned of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum

from contracts.features.event_features import EventFeatures
from serving.request.query import ContextValue

Columns = Mapping[str, ContextValue]


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


def link(columns: Columns, features: EventFeatures) -> str:
    """What joins a click to its impression: the `label.clicks.on` columns as text, as the pipelines compare them."""
    return _texts(columns, features.clicks.on)


def identity(columns: Columns, features: EventFeatures, at: int) -> str:
    """What makes two rows of the log one impression: its key and its day."""
    return f"{day(at)} {_texts(columns, features.log.key)}"


def day(at: int) -> str:
    """YYYY-MM-DD, UTC."""
    return datetime.fromtimestamp(at // 1_000_000, UTC).date().isoformat()


def _texts(columns: Columns, names: tuple[str, ...]) -> str:
    return json.dumps([_text(columns[name]) for name in names], ensure_ascii=False)


def _text(value: ContextValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
