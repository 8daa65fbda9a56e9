"""Which expression of a configuration a column of the output is computed by."""

from __future__ import annotations

from collections.abc import Mapping

from contracts.artifacts import (
    BID,
    FRESH,
    ID_PREFIX,
    ITEM,
    KNOWN,
    LABEL,
    LABEL_TIME,
    POSITION,
    REQUEST,
    TEST_ROW,
    TIME,
    USER,
)
from contracts.config.config import Config
from contracts.config.fields import FieldConfig


def expression_of(config: Config, column: str) -> str | None:
    """`log.derive.NAME = ...`, `label.expression = ...` and so on; None where no expression has a part in it."""
    if column in (LABEL, LABEL_TIME) and config.label.expression:
        return f"label.expression = {config.label.expression!r}"
    if column == TEST_ROW:
        return f"windows.test_where = {config.windows.test_where!r}"
    role = _roles(config).get(column)
    if role:
        return _derived(config, role, ("log", "users", "items"))
    name = column.removeprefix(ID_PREFIX).removesuffix(FRESH).partition("#")[0]
    field = next((field for field in config.fields if name == field.name or name in field.features()), None)
    return _of_field(config, field) if field else _derived(config, column, ("log", "users", "items"))


def _roles(config: Config) -> dict[str, str | None]:
    log = config.log
    return {USER: log.user_id, ITEM: log.item_id, REQUEST: log.request_id, TIME: log.event_time, KNOWN: log.known_time,
            POSITION: log.position, BID: log.bid}


def _of_field(config: Config, field: FieldConfig) -> str | None:
    """Of the columns that the field reads, and of the fields it is made of, the first that has an expression."""
    by_name = {other.name: other for other in config.fields}
    for other in (*field.parts, *([field.of] if field.of else [])):
        found = _of_field(config, by_name[other]) if other in by_name else None
        if found:
            return found
    side = {"user": ("users", "log"), "item": ("items", "log")}.get(field.side, ("log",))
    columns = field.by if field.kind == "counter" else (field.source_column,)
    return next((found for column in columns if (found := _derived(config, column, side))), None)


def _derived(config: Config, column: str, tables: tuple[str, ...]) -> str | None:
    for table in tables:
        source = getattr(config, table)
        expressions: Mapping[str, str] = source.derive if source else {}
        if column in expressions:
            return f"{table}.derive.{column} = {expressions[column]!r}"
    return None
