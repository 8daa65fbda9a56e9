"""Which bundle training started from, so that the same run made again starts there again."""

from __future__ import annotations

from pydantic import JsonValue

from contracts.summaries.summary import Record


class WarmParent(Record):
    """OUT/models/parent.json. `asked` is models:/NAME@ALIAS, "" for a cold start; it led to the bundle `version` for
    these `windows`, or to none."""

    asked: str
    windows: JsonValue = None
    version: str | None = None
    content_hash: str | None = None
