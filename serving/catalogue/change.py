"""One change of an item between two bundles, as it is stored and replayed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from serving.request.query import ContextValue

Kind = Literal["item", "bid", "stock"]
WITHDRAWN = "withdrawn"
WRITER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)  # json.dumps makes one for every value


@dataclass(frozen=True, kw_only=True)
class Change:
    """`version` is the caller's, for one item and kind. `event_time` and `arrived` in microseconds since 1970, UTC.
    `value` as JSON: the raw values of an item by name, "withdrawn", or a number."""

    item: str
    kind: Kind
    version: int
    event_time: int
    arrived: int
    value: str

    @property
    def number(self) -> float:
        """Of a bid or a stock."""
        return float(self.value)

    @property
    def withdraws(self) -> bool:
        return self.kind == "item" and self.value == WITHDRAWAL

    @property
    def values(self) -> dict[str, ContextValue]:
        """Raw values by name, of an item that is there."""
        found = {} if self.withdraws else json.loads(self.value)
        return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


def encoded(value: object) -> str:
    """As `Change.value` holds it."""
    return WRITER.encode(value)


WITHDRAWAL = encoded(WITHDRAWN)
