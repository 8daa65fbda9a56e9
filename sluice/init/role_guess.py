"""Columns of a sample -> label, time, user, item, position and fields, each with the reason.

Users, items and labels are told by their names; kinds by the values; sides by what a user or an item always has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from contracts.config.section import Kind, Side
from contracts.errors import DataError
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
class Field:
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
    fields: list[Field]
    left_out: dict[str, str]
    time: Column | None = None
    user: Column | None = None
    item: Column | None = None
    position: Column | None = None
    notes: dict[str, str] = field(default_factory=dict)


def guess(columns: Sequence[Column], wanted: str | None) -> Guess:
    """`wanted`: the label's column or expression as the user gave it. Raises DataError with what is missing."""
    label = guess_label(columns, wanted)
    rest = [one for one in columns if one.plain not in label.columns and one.name not in label.columns]
    notes = {"label": label.why}
    time = _time(rest, notes)
    user, item = (_named(rest, pattern, what, notes) for pattern, what in ((USER, "user_id"), (ITEM, "item_id")))
    position = _position(rest, notes) if item else None
    roles = [one for one in (time, position) if one is not None]
    left_out: dict[str, str] = {}
    fields = [made for one in rest if one not in roles for made in [_field(one, user, item, left_out)] if made]
    if not fields:
        raise DataError("no column besides the label can be a field: " + "; ".join(
            f"{name}: {why}" for name, why in left_out.items()) + "; bring a table with at least one feature")
    return Guess(columns, label, fields, left_out, time, user, item, position, notes)


def _time(columns: Sequence[Column], notes: dict[str, str]) -> Column | None:
    """The first of the times whose name speaks of no earlier date, if it tells enough moments apart."""
    times = [one for one in columns if one.type == "time"]
    usable = [one for one in times if not BIRTH.search(one.plain)]
    for one in usable:
        moments = len(one.distinct)
        if moments >= FEWEST_TIMES and len(one.known) == len(one.values):
            notes["event_time"] = f"{one.why}; {moments} different ones in the sample"
            return one
    notes["event_time"] = (
        f"{usable[0].name!r} holds times, but only {len(usable[0].distinct)} different ones or not in every row: rows "
        "are dealt out by hash" if usable else "no column holds times of events: rows are dealt out by hash"
    )
    return None


def _named(columns: Sequence[Column], pattern: re.Pattern[str], role: str, notes: dict[str, str]) -> Column | None:
    for one in columns:
        if pattern.match(one.plain) and one.type in ("integer", "text") and len(one.known) == len(one.values):
            several = len(one.distinct)
            if several > 1:
                notes[role] = f"its name, and {several} different values in {len(one.values)} sampled rows"
                return one
    notes[role] = "no column is named like one"
    return None


def _position(columns: Sequence[Column], notes: dict[str, str]) -> Column | None:
    for one in columns:
        if POSITION.match(one.plain) and one.type == "integer" and len(one.known) == len(one.values):
            low, high = min(one.known), max(one.known)
            if 1 <= low < high <= 1000:
                notes["position"] = f"its name, and values from {low} to {high}"
                return one
    return None


def _field(one: Column, user: Column | None, item: Column | None, left_out: dict[str, str]) -> Field | None:
    """None, with the reason in `left_out`, where a column cannot be a field."""
    reason = _useless(one) if one not in (user, item) else None
    if reason:
        left_out[one.name] = reason
        return None
    side, why = _side(one, user, item)
    if one.type == "list":
        longest = max((len(value) for value in one.known), default=1)
        whole = one.separator is None and all(isinstance(v, int) for values in one.known for v in values)
        keys = "int64" if whole else "string"
        return Field(one, "multi_valued", side, keys, length=max(1, min(longest, 50)), why=f"{one.why}{why}")
    if one not in (user, item) and _is_number(one):
        skewed = _skewed(one)
        return Field(one, "numeric", side, log=skewed, why=f"{one.why}{', heavy-tailed' if skewed else ''}{why}")
    return Field(one, "categorical", side, _key_type(one), why=f"{len(one.distinct)} different values{why}")


def _useless(one: Column) -> str | None:
    rows, kinds = len(one.values), len(one.distinct)
    if kinds == 0:
        return "no row of the sample has a value"
    if kinds == 1 and len(one.known) == rows:
        return "every row of the sample has the same value"
    if one.type == "time":
        return "a time that is not the event's; derive a number of days from it to use it"
    if one.type == "other":
        return f"{one.why} is no kind of field; derive columns of numbers or keys from it"
    if one.type == "integer" and kinds == len(one.known) > FEW and one.known == sorted(one.known):
        return "it grows from row to row: a row number"
    if one.type in ("text", "integer") and kinds > UNIQUE * len(one.known) and len(one.known) > FEW:
        if one.type == "text" or IDENTIFIER.search(one.plain):
            return "nearly every row has a value of its own: an identifier, or free text"
    elif one.type == "text" and sum(len(value) for value in one.known) > LONG * len(one.known):
        return "long free text"
    return None


def _is_number(one: Column) -> bool:
    few = len(one.distinct) <= FEW
    return one.type == "number" or (one.type == "integer" and not few and not IDENTIFIER.search(one.plain))


def _key_type(one: Column) -> str:
    return {"integer": "int64", "boolean": "bool"}.get(one.type, "string")


def _skewed(one: Column) -> bool:
    """A mean far above the median, of values that are not negative."""
    ordered = sorted(one.known)
    median, mean = ordered[len(ordered) // 2], sum(ordered) / len(ordered)
    return bool(ordered[0] >= 0 and mean > 2 * max(median, 1e-9) and ordered[-1] > 50)


def _side(one: Column, user: Column | None, item: Column | None) -> tuple[Side, str]:
    """The side of a key that always comes with the same value of the column."""
    keys: tuple[tuple[Side, Column | None], ...] = (("user", user), ("item", item))
    for side, key in keys:
        if one is key:
            return side, ""
    for side, key in keys:
        if key is not None and _follows(one, key):
            return side, f"; each {side} has one"
    return "context", ""


def _follows(one: Column, key: Column) -> bool:
    """Whether repeated keys always show the same value; keys that hardly ever repeat prove nothing."""
    seen: dict[Any, Any] = {}
    repeats = 0
    for owner, value in zip(key.values, one.values, strict=True):
        if owner in seen:
            repeats += 1
            if seen[owner] != value:
                return False
        seen[owner] = value
    return repeats >= FEW
