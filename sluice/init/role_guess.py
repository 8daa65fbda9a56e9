"""Columns of a sample -> label, time, user, item, position and fields, each with the reason.

Users, items and labels are told by their names; kinds by the values; sides by what a user or an item always has.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from contracts.config.section import Kind, Side
from contracts.errors import DataError
from sluice.init.codes import are_codes
from sluice.init.column_types import Column
from sluice.init.label_guess import Label, guess_label

USER = re.compile(r"^(user|customer|client|member|visitor|account|cookie|viewer|reader|player|subscriber)"
                  r"(_?(id|key|no))?$|^uid$", re.I)
ITEM = re.compile(r"^(item|product|movie|film|song|track|article|sku|asin|isbn|listing|video|offer|ad|adgroup|creative)"
                  r"(_?(id|key|no))?$", re.I)
POSITION = re.compile(r"^(position|pos|slot|rank|slot_index)$", re.I)
BIRTH = re.compile(r"birth|dob|registered|signup|joined|released", re.I)
IDENTIFIER = re.compile(r"(^|_)(id|key|code|zip|postcode|no|number)$", re.I)
FEW, FEWEST_TIMES, UNIQUE, LONG = 20, 20, 0.9, 60


@dataclass(frozen=True)
class GuessedField:
    """A column as a field; `length` of a list, `log` for heavy tails, `why` in words."""

    column: Column
    kind: Kind
    side: Side
    key_type: str = "string"
    log: bool = False
    length: int = 1
    why: str = ""


@dataclass(frozen=True)
class Guess:
    """`left_out`: column -> reason. `notes`: role -> reason."""

    columns: Sequence[Column]
    label: Label
    fields: list[GuessedField]
    left_out: dict[str, str]
    time: Column | None = None
    user: Column | None = None
    item: Column | None = None
    position: Column | None = None
    notes: dict[str, str] = dataclasses.field(default_factory=dict)


def _takes(columns: Sequence[Column]) -> tuple[Column, Column] | None:
    """User and item, where there is a time of the event, too."""
    notes: dict[str, str] = {}
    user, item = _named(columns, USER, "user_id", notes), _named(columns, ITEM, "item_id", notes)
    return (user, item) if user and item and _time(columns, notes) else None


def guess(columns: Sequence[Column], wanted: str | None) -> Guess:
    """`wanted`: the label's column or expression as the user gave it. Raises DataError with what is missing."""
    label = guess_label(columns, wanted, _takes(columns))
    rest = [column for column in columns if column.plain not in label.columns and column.name not in label.columns]
    notes = {"label": label.why}
    time = _time(rest, notes)
    user, item = (_named(rest, pattern, what, notes) for pattern, what in ((USER, "user_id"), (ITEM, "item_id")))
    position = _position(rest, notes) if item and label.expression is not None else None
    roles = [column for column in (time, position) if column is not None]
    left_out: dict[str, str] = {}
    taken = [_field(column, user, item, left_out) for column in rest if column not in roles]
    fields = [field for field in taken if field is not None]
    if not fields:
        raise DataError("no column besides the label can be a field: " + "; ".join(
            f"{name}: {why}" for name, why in left_out.items()) + "; bring a table with at least one feature")
    return Guess(columns, label, fields, left_out, time, user, item, position, notes)


def _time(columns: Sequence[Column], notes: dict[str, str]) -> Column | None:
    """The first of the times whose name speaks of no earlier date, if it tells enough moments apart."""
    times = [column for column in columns if column.type == "time"]
    usable = [column for column in times if not BIRTH.search(column.plain)]
    for column in usable:
        moments = len(column.distinct)
        if moments >= FEWEST_TIMES and len(column.known) == len(column.values):
            notes["event_time"] = f"{column.why}; {moments} different ones in the sample"
            return column
    notes["event_time"] = (
        f"{usable[0].name!r} holds times, but only {len(usable[0].distinct)} different ones or not in every row: rows "
        "are dealt out by hash" if usable else "no column holds times of events: rows are dealt out by hash"
    )
    return None


def _named(columns: Sequence[Column], pattern: re.Pattern[str], role: str, notes: dict[str, str]) -> Column | None:
    for column in columns:
        complete = len(column.known) == len(column.values)
        if pattern.match(column.plain) and column.type in ("integer", "text") and complete:
            several = len(column.distinct)
            if several > 1:
                notes[role] = f"its name, and {several} different values in {len(column.values)} sampled rows"
                return column
    notes[role] = "no column is named like one"
    return None


def _position(columns: Sequence[Column], notes: dict[str, str]) -> Column | None:
    for column in columns:
        if POSITION.match(column.plain) and column.type == "integer" and len(column.known) == len(column.values):
            low, high = min(column.known), max(column.known)
            if 1 <= low < high <= 1000:
                notes["position"] = f"its name, and values from {low} to {high}"
                return column
    return None


def _field(column: Column, user: Column | None, item: Column | None, left_out: dict[str, str]) -> GuessedField | None:
    """None, with the reason in `left_out`, where a column cannot be a field."""
    reason = _useless(column) if column not in (user, item) else None
    if reason:
        left_out[column.name] = reason
        return None
    side, why = _side(column, user, item)
    if column.type == "list":
        longest = max((len(value) for value in column.known), default=1)
        whole = column.separator is None and all(isinstance(v, int) for values in column.known for v in values)
        keys = "int64" if whole else "string"
        length = max(1, min(longest, 50))
        return GuessedField(column, "multi_valued", side, keys, length=length, why=f"{column.why}{why}")
    number = column not in (user, item) and _is_number(column)
    codes = are_codes(column) if number and column.type == "integer" else None
    if number and codes is None:
        skewed = _skewed(column)
        tails = ", heavy-tailed" if skewed else ""
        return GuessedField(column, "numeric", side, log=skewed, why=f"{column.why}{tails}{why}")
    seen = f"{len(column.distinct)} different values" + (f"; {codes}" if codes else "")
    return GuessedField(column, "categorical", side, _key_type(column), why=f"{seen}{why}")


def _useless(column: Column) -> str | None:
    rows, kinds = len(column.values), len(column.distinct)
    if kinds == 0:
        return "no row of the sample has a value"
    if kinds == 1 and len(column.known) == rows:
        return "every row of the sample has the same value"
    if column.type == "time":
        return "a time that is not the event's; derive a number of days from it to use it"
    if column.type == "other":
        return f"{column.why} is no kind of field; derive columns of numbers or keys from it"
    if column.type == "integer" and kinds == len(column.known) > FEW and column.known == sorted(column.known):
        return "it grows from row to row: a row number"
    if column.type in ("text", "integer") and kinds > UNIQUE * len(column.known) and len(column.known) > FEW:
        if column.type == "text" or IDENTIFIER.search(column.plain):
            return "nearly every row has a value of its own: an identifier, or free text"
    elif column.type == "text" and sum(len(value) for value in column.known) > LONG * len(column.known):
        return "long free text"
    return None


def _is_number(column: Column) -> bool:
    few = len(column.distinct) <= FEW
    return column.type == "number" or (column.type == "integer" and not few and not IDENTIFIER.search(column.plain))


def _key_type(column: Column) -> str:
    return {"integer": "int64", "boolean": "bool"}.get(column.type, "string")


def _skewed(column: Column) -> bool:
    """A mean far above the median, of values that are not negative."""
    ordered = sorted(column.known)
    median, mean = ordered[len(ordered) // 2], sum(ordered) / len(ordered)
    return bool(ordered[0] >= 0 and mean > 2 * max(median, 1e-9) and ordered[-1] > 50)


def _side(column: Column, user: Column | None, item: Column | None) -> tuple[Side, str]:
    """The side of a key that always comes with the same value of the column."""
    keys: tuple[tuple[Side, Column | None], ...] = (("user", user), ("item", item))
    for side, key in keys:
        if column is key:
            return side, ""
    for side, key in keys:
        if key is not None and _follows(column, key):
            return side, f"; each {side} has one"
    return "context", ""


def _follows(column: Column, key: Column) -> bool:
    """Whether repeated keys always show the same value; keys that hardly ever repeat prove nothing."""
    seen: dict[Any, Any] = {}
    repeats = 0
    for owner, value in zip(key.values, column.values, strict=True):
        if owner in seen:
            repeats += 1
            if seen[owner] != value:
                return False
        seen[owner] = value
    return repeats >= FEW
