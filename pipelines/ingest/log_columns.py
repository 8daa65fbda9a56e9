"""Which raw columns of the log the configured fields read, so that ingest keeps them and no others."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from contracts.artifacts import DAY
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.errors import SchemaError
from pipelines.engine.step import nearest


def kept_columns(config: Config, log: Collection[str], users: Collection[str], items: Collection[str]) -> list[str]:
    """Raw columns of the log that fields, request filters and histories read.

    A user or item field is read from its own table where that has the column; the key columns come as `_user` and
    `_item`. Raises SchemaError, with the nearest name, for a column that is nowhere, and for a reserved name.
    """
    kept = []
    for name, side, column in _read(config):
        table = {"user": users, "item": items}.get(side, ())
        if column in table or column in _keys(config):
            continue
        if column not in log:
            raise SchemaError(
                f"{name}: column {column!r} is in no table of its side ({side}){nearest(column, {*log, *table})}"
            )
        if column.startswith("_") or column == DAY:
            raise SchemaError(f"{name}: the column name {column!r} is reserved; derive a copy under another name")
        kept.append(column)
    return list(dict.fromkeys(kept))


def _keys(config: Config) -> set[str | None]:
    return {config.log.user_id, config.log.item_id} - {None}


def _read(config: Config) -> Iterator[tuple[str, str, str]]:
    """(who reads, side, column)."""
    for field in config.fields:
        for column in columns_of(field):
            yield f"field {field.name!r}", field.side, column
    for column, who in config.retrieve.item_columns.items():
        yield who, "item", column
    for column in config.retrieve.event_columns:
        yield "retrieve.events", "context", column


def columns_of(field: FieldConfig) -> tuple[str, ...]:
    """The columns that a field reads; a sequence and a cross read other fields."""
    if field.kind == "counter":
        return field.by
    return () if field.kind in ("sequence", "cross") else (field.source_column,)
