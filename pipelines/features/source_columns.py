"""Which table a configured field reads its column from, and as what type.

    side user      the users table where it has the column, else the log
    side item      the items table where it has the column, else the log
    side context   the log

The log's `user_id` and `item_id` roles (and the tables' keys) are the reserved columns _user and _item. Columns of a
table are called `_users_NAME` or `_items_NAME` once joined to the events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from contracts.artifacts import (
    BID,
    CLICK_TIME,
    DAY,
    DRAWS,
    ITEM,
    KNOWN,
    LABEL,
    LABEL_TIME,
    POSITION,
    REQUEST,
    ROW,
    TEST_ROW,
    TIME,
    USER,
)
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.config.section import Side
from contracts.errors import SchemaError
from pipelines.engine.step import nearest
from pipelines.features.key_types import SPARK_TYPES

RESERVED = (ROW, USER, ITEM, REQUEST, TIME, KNOWN, LABEL, LABEL_TIME, CLICK_TIME, POSITION, BID, TEST_ROW, DRAWS,
            DAY)
Origin = Literal["log", "users", "items"]
INEXACT = (T.FloatType, T.DoubleType, T.DecimalType)
NESTED = (T.ArrayType, T.MapType, T.StructType, T.BinaryType)


class Located(NamedTuple):
    """`column` of the table `origin`, called `name` in the joined events."""

    origin: Origin
    column: str
    name: str
    type: T.DataType


@dataclass(frozen=True)
class SourceColumns:
    """The schemas of the ingested tables; None where there is no such table."""

    config: Config
    log: T.StructType
    users: T.StructType | None
    items: T.StructType | None

    def locate(self, field: str, side: Side, column: str) -> Located:
        """Raises SchemaError that names the field, the column and the nearest one."""
        column = self._reserved(side, column)
        origin: Origin = "users" if side == "user" else "items"
        table = {"user": self.users, "item": self.items}.get(side)
        if table is not None and column in table.names and column not in (USER, ITEM):
            return Located(origin, column, f"_{origin}_{column}", table[column].dataType)
        if column in self.log.names:
            return Located("log", column, column, self.log[column].dataType)
        known = {*(table.names if table is not None else []), *self.log.names} - set(RESERVED)
        where = f"field {field!r}: column {column!r} is in no table of its side ({side})"
        raise SchemaError(where + nearest(column, known))

    def of_field(self, field: FieldConfig) -> Located:
        return self.locate(field.name, field.side, field.source_column)

    def keys_of(self, field: FieldConfig) -> tuple[Located, ...]:
        return tuple(self.locate(field.name, field.side, column) for column in field.by)

    def _reserved(self, side: Side, column: str) -> str:
        users, items = self.config.users, self.config.items
        if column == self.config.log.user_id or (side == "user" and users is not None and column == users.key):
            return USER
        if column == self.config.log.item_id or (side == "item" and items is not None and column == items.key):
            return ITEM
        return column


def joined(
    events: DataFrame, table: DataFrame | None, key: str, origin: Origin, columns: Iterable[Located]
) -> DataFrame:
    """Events with those of the columns that the table has, null where it knows no such key."""
    needed = {c.name: F.col(c.column).alias(c.name) for c in columns if c.origin == origin}
    if table is None or not needed:
        return events
    return events.join(table.select(key, *needed.values()), key, "left")


def typed(field: FieldConfig, located: Located) -> Column:
    """The field's raw feature from the joined events. Raises SchemaError on a type that the kind cannot have."""
    column = F.col(located.name)
    if field.kind == "multi_valued":
        return _multi_valued(field, located, column)
    if field.kind == "numeric":
        if not isinstance(located.type, T.NumericType | T.BooleanType):
            raise _wrong_type(field, located, "a number", f'derive one: {located.column}_number = "CAST(… AS DOUBLE)"')
        return column.cast("double")
    if isinstance(located.type, (*INEXACT, *NESTED)):
        raise _wrong_type(
            field, located, "text, whole numbers or booleans", "derive such a column, or use kind 'numeric'"
        )
    return column.cast(SPARK_TYPES[field.key_type])


def _multi_valued(field: FieldConfig, located: Located, column: Column) -> Column:
    """Array of keys without nulls; text is cut at the separator, empty pieces dropped."""
    if isinstance(located.type, T.StringType) and field.separator:
        pieces = F.split(column, literal(field.separator))
        return F.filter(pieces, lambda piece: piece != "").cast(f"array<{SPARK_TYPES[field.key_type]}>")
    if not isinstance(located.type, T.ArrayType):
        raise _wrong_type(
            field, located, "an array, or text with `separator`", "set fields.separator or derive an array"
        )
    if isinstance(located.type.elementType, (*INEXACT, *NESTED)):
        raise _wrong_type(field, located, "an array of text, whole numbers or booleans", "derive such a column")
    return F.array_compact(column).cast(f"array<{SPARK_TYPES[field.key_type]}>")


def literal(text: str) -> str:
    """A regular expression that matches this text alone, in every engine's dialect."""
    return "".join("\\" + character if character in r"\.[]{}()<>*+-=!?^$|&~#" else character for character in text)


def _wrong_type(field: FieldConfig, located: Located, needed: str, cure: str) -> SchemaError:
    found = located.type.simpleString()
    return SchemaError(
        f"field {field.name!r} of kind {field.kind}: column {located.column!r} is {found}, needed is {needed}; {cure}"
    )
