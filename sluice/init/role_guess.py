"""Columns of a sample -> label, time, user, item, position, bid and fields, each with the reason.

Users, items and labels are told by their names, or by their places in the four columns of ratings without a header.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

from contracts.errors import DataError
from sluice.init.column_types import Column, missing
from sluice.init.field_guess import GuessedField, Roles, after_the_label, fields_of
from sluice.init.follows import follows, name_users
from sluice.init.label_guess import Label, guess_label, is_rating
from sluice.init.plain_names import quoted
from sluice.init.side_tables import (
    Beside,
    Side,
    SideTable,
    clicks_beside,
    matching,
    not_joined,
    side_table,
    speaks_of_users,
)
from sluice.init.time_formats import UNNAMED

SUFFIX = r"(_?(id|key|no|hash|idx|index|code|uuid))?$"
USER = re.compile(r"^(hashed_|anon_)?(user|customer|client|member|visitor|account|cookie|viewer|reader|player|"
                  r"subscriber|reviewer|person|household|buyer|shopper|guest|profile|listener|student|learner|patient|passenger|"
                  r"rider|traveller|traveler|gamer|patron|consumer|donor)" + SUFFIX + "|^(uid|msno)$", re.I)
ITEM = re.compile(r"^(hashed_|parent_)?(item|product|movie|film|song|track|article|sku|asin|isbn|listing|video|offer|"
                  r"ad|adgroup|creative|stock|goods|business|recipe|podcast|game|book|anime|hotel|venue|poi|news|post)"
                  + SUFFIX + "|^(iid|pid)$", re.I)
# Names of items where no column has one of the above: a song's artist is no item, a log of artists has no others.
WIDER_ITEM = re.compile(r"^(artist|album|playlist|episode|show|course|lesson|exercise|restaurant|place|destination|job|"
                        r"vacancy|property|coupon|deal|banner|campaign)" + SUFFIX, re.I)
NAMES = {"user_id": (USER,), "item_id": (ITEM, WIDER_ITEM)}
POSITION = re.compile(r"^(position|pos|slot|rank|slot_index)$", re.I)
BID = re.compile(r"^((max_?|cpc_?)?bid(_?(price|amount|value|cpc|usd|eur|gbp))?|(max_?)?cpc|cost_per_click)$", re.I)
BIRTH = re.compile(r"birth|dob|registered|signup|joined|released", re.I)
ASIN = re.compile(r"(B0[0-9A-Z]{8}|\d{9}[0-9X])$")
FEWEST_TIMES, KNOWN_TIMES, RECURS = 20, 0.995, 0.5
KNOWN_KEYS = {"user_id": 0.5, "item_id": 0.995}


@dataclass(frozen=True)
class Guess:
    """`left_out`: column -> reason. `notes`: role -> reason. `not_joined`: file -> reason. `with_clock`: hour and
    weekday of the event are fields."""

    columns: Sequence[Column]
    label: Label
    fields: list[GuessedField]
    left_out: dict[str, str]
    time: Column | None = None
    user: Column | None = None
    item: Column | None = None
    position: Column | None = None
    bid: Column | None = None
    notes: dict[str, str] = dataclasses.field(default_factory=dict)
    tables: list[SideTable] = dataclasses.field(default_factory=list)
    not_joined: dict[str, str] = dataclasses.field(default_factory=dict)
    with_clock: bool = True

    @property
    def all_fields(self) -> list[GuessedField]:
        """Of the log, and of the tables joined to it."""
        return [*self.fields, *(field for table in self.tables for field in table.fields)]


def _takes(columns: Sequence[Column]) -> tuple[Column, Column] | None:
    """User and item, where there is a time of the event, too."""
    notes: dict[str, str] = {}
    user, item = _named(columns, "user_id", notes), _named(columns, "item_id", notes)
    return (user, item) if user and item and _time(columns, notes) else None


def guess(
    columns: Sequence[Column], wanted: str | None, beside: Sequence[Beside] = (), rows: int | None = None
) -> Guess:
    """`wanted`: the label's column or expression as the user gave it; `beside`: other tables of the log's folder;
    `rows`: of the log, where the columns are a sample of them. Raises DataError with what is missing."""
    columns, rating = _ratings_without_names(columns)
    shown = _time(columns, {})
    clicks = clicks_beside(columns, shown, beside) if shown else None
    label = guess_label(columns, wanted, _takes(columns), rating, clicks)
    beside = [table for table in beside if label.clicks is None or table.sample is not label.clicks.sample]
    rest = [column for column in columns if column.plain not in label.columns and column.name not in label.columns]
    notes = {"label": label.why}
    time = _time(rest, notes)
    user, item = _named(rest, "user_id", notes), _named(rest, "item_id", notes)
    named, user = user, _with_strangers(user, item, time, label, notes)
    if named is not None and user is not None:
        columns, rest = _replaced(columns, named, user), _replaced(rest, named, user)
    user, item, fitting = _with_tables(rest, user, item, beside, notes)
    position = _position(rest, notes) if item and not label.positives_alone else None
    bid = _bid(rest, notes) if item and not label.positives_alone else None
    roles = [column for column in (time, position, bid) if column is not None]
    left_out: dict[str, str] = {}
    known = Roles(user, item, label.truth)
    fields = [field for column in rest if column not in roles for field in fields_of(column, known, left_out)]
    tables = _joined(columns, fitting, known)
    if not fields:
        raise DataError("no column besides the label can be a field: " + "; ".join(
            f"{name}: {why}" for name, why in left_out.items()) + "; bring a table with at least one feature")
    apart = dict(not_joined({"user": user, "item": item}, beside))
    said = (name_users(user, time, label.truth, rows or len(user.values))
            if user is not None and time is not None and label.truth is not None else "")
    if said:
        left_out["hour and weekday of the event"] = said
    return Guess(columns, label, fields, left_out, time, user, item, position, bid, notes, tables, apart, not said)


def _with_strangers(
    user: Column | None, item: Column | None, time: Column | None, label: Label, notes: dict[str, str]
) -> Column | None:
    """The user, also where it is missing in some rows, each of which becomes a user of its own: left as they are, they
    would go to quarantine, and as one user, they would share a history that nobody has. None where what is missing
    tells the label, or nothing tells such rows apart."""
    if user is None or len(user.known) == len(user.values):
        return user
    said = after_the_label(user, label.truth, joined=False)
    if said or not (item or time):
        notes["user_id"] += f"; not taken for the user: {said or 'neither items nor times tell those rows apart'}"
        return None
    notes["user_id"] += ": each such row is taken as a user of its own, whom nothing is known of"
    marks = [_text(column) for column in (item, time) if column is not None]
    read = f"CAST({user.key} AS STRING)"
    return dataclasses.replace(
        user, type="text", values=[None if value is None else str(value) for value in user.values], is_text=True,
        pointed=False, expression=f"coalesce(nullif({read}, ''), concat_ws('/', 'unknown', {', '.join(marks)}))")


def _text(column: Column) -> str:
    """A time as it is written, where it is a column of the file."""
    raw = quoted(column.name) if column.inside is None and column.type == "time" else None
    return f"CAST({raw or column.expression or quoted(column.name)} AS STRING)"


def _replaced(columns: Sequence[Column], old: Column, new: Column) -> list[Column]:
    return [new if column is old else column for column in columns]


def _ratings_without_names(columns: Sequence[Column]) -> tuple[Sequence[Column], Column | None]:
    """user, item, rating, time: as ratings without a header are written, users or items first. Named so, and the
    rating."""
    if len(columns) != 4 or not all(UNNAMED.match(column.plain) for column in columns):
        return columns, None
    *keys, rating, time = columns
    if time.type != "time" or not is_rating(rating) or not all(_recurs(key) for key in keys):
        return columns, None
    items_first = sum(bool(ASIN.match(str(value))) for value in keys[0].known) > len(keys[0].known) / 2
    roles = ("item_id", "user_id") if items_first else ("user_id", "item_id")
    named = [dataclasses.replace(key, name=role, plain=role) for key, role in zip(keys, roles, strict=True)]
    return [*named, rating, time], rating


def _recurs(column: Column) -> bool:
    return (column.type in ("integer", "text") and len(column.known) == len(column.values)
            and FEWEST_TIMES < len(column.distinct) < RECURS * len(column.values))


Fit = tuple[Side, Beside, Column, Column, str]


def _with_tables(
    columns: Sequence[Column], user: Column | None, item: Column | None, beside: Sequence[Beside], notes: dict[str, str]
) -> tuple[Column | None, Column | None, list[Fit]]:
    """User and item, told by the tables beside where names did not, and every table that fits one of them."""
    fits: list[Fit] = []
    whole = [c for c in columns if c is user or c is item or len(c.known) == len(c.values)]
    for column, table, key, why in matching(whole, beside, user, item):
        side: Side = "user" if column is user or (column is not item and speaks_of_users(table)) else "item"
        if side == "user" and user is None:
            user, notes["user_id"] = column, why
        if side == "item" and item is None:
            item, notes["item_id"] = column, why
        if column is (user if side == "user" else item):
            fits.append((side, table, key, column, why))
    return user, item, fits


def _joined(columns: Sequence[Column], fits: Sequence[Fit], roles: Roles) -> list[SideTable]:
    """Of each side the table that has most to say."""
    taken, tables = {column.plain.lower() for column in columns}, []
    for wanted in ("user", "item"):
        offered = [side_table(side, beside, key, column, why, roles, taken)
                   for side, beside, key, column, why in fits if side == wanted]
        best = max(offered, key=lambda table: len(table.fields), default=None)
        if best is not None and best.fields:
            tables.append(best)
            taken |= {other.plain.lower() for other in best.beside.columns} | {field.name for field in best.fields}
    return tables


def _time(columns: Sequence[Column], notes: dict[str, str]) -> Column | None:
    """The first of the times whose name speaks of no earlier date, if it tells enough moments apart; one that is always
    the same of an item is the item's, where there is another."""
    usable = [column for column in columns if column.type == "time" and not BIRTH.search(column.plain)]
    item = _named(columns, "item_id", {}) if len(usable) > 1 else None
    usable.sort(key=lambda time: item is not None and follows(time, item))
    for column in usable:
        moments = len(column.distinct)
        read = sum(column.moment is None or column.moment(value) is not None for value in column.known)
        if moments >= FEWEST_TIMES and read >= KNOWN_TIMES * len(column.values):
            notes["event_time"] = f"{column.why}; {moments} different ones in the sample"
            return column
    notes["event_time"] = (
        f"{usable[0].name!r} holds times, but only {len(usable[0].distinct)} different ones or not in every row: rows "
        "are dealt out by hash" if usable else "no column holds times of events: rows are dealt out by hash"
    )
    return None


def _named(columns: Sequence[Column], role: str, notes: dict[str, str]) -> Column | None:
    """Of the names that fit best, the first column with values enough: rows without an item are of no use, rows without
    a user are."""
    usable = [column for column in columns if column.type in ("integer", "text")
              and len(column.known) >= KNOWN_KEYS[role] * len(column.values) and len(column.distinct) > 1]
    for pattern in NAMES[role]:
        for column in usable:
            if pattern.match(column.plain):
                several, rows = len(column.distinct), len(column.values)
                notes[role] = f"its name, and {several} different values in {rows} sampled rows{missing(column)}"
                if role == "item_id" and len(column.known) < rows:
                    notes[role] += ": they go to quarantine"
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


def _bid(columns: Sequence[Column], notes: dict[str, str]) -> Column | None:
    """A number above 0 in every row: a row without a bid would go to quarantine."""
    for column in columns:
        if BID.match(column.plain) and column.type in ("integer", "number") and len(column.known) == len(column.values):
            low, high = min(column.known), max(column.known)
            if low > 0:
                notes["bid"] = (
                    f"its name, and values from {low} to {high}: taken for what a click pays, so that items are found "
                    "and ranked by bid x probability, and priced in an auction (rerank.kind says otherwise); it is no "
                    "field then. Remove this line where it is no bid per click")
                return column
    return None
