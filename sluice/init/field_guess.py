"""A column -> the field or fields it is offered as, each with its reason, or the reason why it is none.

Kinds are told by the values and by what they say of the label; sides by what a user or an item always has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from contracts.config.section import Kind, Side
from sluice.init.column_types import Column, missing
from sluice.init.follows import follows
from sluice.init.label_guess import NAMES as OUTCOME
from sluice.init.plain_names import quoted
from sluice.init.whole_numbers import judge

IDENTIFIER = re.compile(r"(^|_)(id|key|code|zip|postcode|no|number)$|[a-z0-9](Id|ID|Key|Code|No)$")
POSTAL = re.compile(r"(^|_)(zip|zip_?code|post_?code|postal(_?code)?|plz)($|_)", re.I)
FRAME_INDEX = re.compile(r"^(unnamed_0|index|row_?(id|number)?|c0)$", re.I)
FEW, UNIQUE, LONG, AREAS = 20, 0.9, 60, 100
NEARLY_ALL, PURE, LEAST = 0.98, 0.998, 10  # of rows, and of rows of each class


@dataclass(frozen=True)
class GuessedField:
    """A column as a field; `length` of a list, `log` for heavy tails, `why` in words; `derive` is the SQL of a column
    of its own, called `name`, where the field does not read `column` itself."""

    column: Column
    name: str
    kind: Kind
    side: Side
    key_type: str = "string"
    log: bool = False
    length: int = 1
    why: str = ""
    derive: str | None = None


@dataclass(frozen=True)
class Roles:
    """Whose rows these are, and which of the sampled rows are positive, where the sample tells."""

    user: Column | None
    item: Column | None
    truth: Sequence[bool] | None


def fields_of(column: Column, roles: Roles, left_out: dict[str, str], side: Side | None = None) -> list[GuessedField]:
    """None, with the reason in `left_out`, where a column cannot be a field. `side`: of a table beside the log."""
    is_role = column in (roles.user, roles.item)
    reason = None if is_role else after_the_label(column, roles.truth, side is not None) or useless(column)
    if reason:
        left_out[column.name] = reason
        return []
    side, why = (side, "") if side is not None else _side(column, roles.user, roles.item)
    if column.type == "list":
        return [_list(column, side, why)]
    if column.type == "number":
        return [_number(column, side, why)]
    if column.type == "integer" and not is_role and len(column.distinct) > FEW:
        return _whole(column, roles.truth, side, why, left_out)
    seen = f"{column.why or column.type}, {len(column.distinct)} different values"
    return [_category(column, side, f"{seen}{why}"), *_areas(column, side)]


def _whole(
    column: Column, truth: Sequence[bool] | None, side: Side, why: str, left_out: dict[str, str]
) -> list[GuessedField]:
    known = [place for place, value in enumerate(column.values) if value is not None]
    values, label = [column.values[place] for place in known], [truth[place] for place in known] if truth else None
    meaning, reason = judge(column.plain, values, label)
    single = len(column.distinct) > UNIQUE * len(column.known)
    if single and meaning == "code":
        left_out[column.name] = f"nearly every row has a value of its own: an identifier ({reason})"
        return []
    if meaning == "quantity" or single:
        return [_number(column, side, f": {reason}{why}")]
    as_code = _category(column, side, f"{column.why}: {reason}{why}")
    if meaning == "code":
        return [as_code, *_areas(column, side)]
    name = f"{column.plain}_value"
    read = column.expression or quoted(column.name)
    as_number = GuessedField(column, name, "numeric", side, log=skewed(column), derive=f"try_cast({read} AS DOUBLE)",
                             why=f"the same as a quantity: the signs for a code and for a quantity are both there{why}")
    return [as_code, *_areas(column, side), as_number]


def _number(column: Column, side: Side, why: str) -> GuessedField:
    tails = skewed(column)
    return GuessedField(column, column.plain, "numeric", side, log=tails,
                        why=f"{column.why}{', heavy-tailed' if tails else ''}{why}")


def _list(column: Column, side: Side, why: str) -> GuessedField:
    longest = max((len(value) for value in column.known), default=1)
    whole = column.separator is None and all(isinstance(v, int) for values in column.known for v in values)
    return GuessedField(column, column.plain, "multi_valued", side, "int64" if whole else "string",
                        length=max(1, min(longest, 50)), why=f"{column.why}{why}")


def _category(column: Column, side: Side, why: str) -> GuessedField:
    keys = {"integer": "int64", "boolean": "bool"}.get(column.type, "string")
    return GuessedField(column, column.plain, "categorical", side, keys, why=why)


def _areas(column: Column, side: Side) -> list[GuessedField]:
    """The first characters of a postal code, which name the area."""
    five_digits = column.type == "text" and all(re.fullmatch(r"\d{5}", value) for value in column.known[:AREAS])
    if not (five_digits or POSTAL.search(column.plain)) or len(column.distinct) < AREAS:
        return []
    return [GuessedField(column, f"{column.plain}_area", "categorical", side,
                         derive=f"substring(CAST({column.expression or quoted(column.name)} AS STRING), 1, 2)",
                         why="the first two characters of a postal code: the area, as a group")]


def useless(column: Column) -> str | None:
    """Why no model can read anything off the column; None: it may."""
    rows, kinds = len(column.values), len(column.distinct)
    if kinds == 0:
        return "no row of the sample has a value"
    if kinds == 1 and len(column.known) == rows:
        return "every row of the sample has the same value"
    if column.type == "time":
        return "a time that is not the event's; derive a number of days from it to use it"
    if column.type == "other":
        return f"{column.why} is no kind of field; derive columns of numbers or keys from it"
    many = len(column.known) > FEW
    if column.type == "integer" and kinds == len(column.known) and many and column.known == sorted(column.known):
        return "it grows from row to row: a row number"
    if FRAME_INDEX.match(column.plain) and column.type == "integer" and kinds > rows / 2 and many:
        return "a row number, as data frames write"
    if column.type in ("text", "integer") and kinds > UNIQUE * len(column.known) and many:
        if column.type == "text" or IDENTIFIER.search(column.plain) or IDENTIFIER.search(column.plain.lower()):
            return "nearly every row has a value of its own: an identifier, or free text"
    elif column.type == "text" and sum(len(value) for value in column.known) > LONG * len(column.known):
        return "long free text"
    return None


def after_the_label(column: Column, truth: Sequence[bool] | None, joined: bool) -> str | None:
    """What is there for one class alone, or tells the class by each of a few values, came after the label. `joined`: a
    column of a table beside the log, whose values come for all rows of a key at once, so that few keys prove nothing.
    """
    if truth is None or min(sum(truth), len(truth) - sum(truth)) < LEAST:
        return None
    known = [value is not None for value in column.values]
    shares = [sum(k for k, t in zip(known, truth, strict=True) if t is side) / sum(t is side for t in truth)
              for side in (True, False)]
    if min(shares) <= 1 - NEARLY_ALL and max(shares) >= NEARLY_ALL:
        return (f"there for {shares[0]:.0%} of the positives and {shares[1]:.0%} of the negatives: it tells the label, "
                "and came after it")
    if not joined and _of_one_class(known, truth):
        there = "positives" if shares[0] else "negatives"
        return f"there for {max(shares):.0%} of the {there} and for none of the others: it came after the label"
    if column.type in ("list", "other") or not 2 <= len(column.distinct) <= FEW:
        return None
    classes = Counter(zip(column.values, truth, strict=True))
    values = {value for value, _ in classes}
    if not joined and OUTCOME.match(column.plain) and len(values) == 2 and any(
            _of_one_class([other == value for other in column.values], truth) for value in values):
        return ("named like a label, and one of the two never comes without the other: known after the label; "
                f"--label {column.plain} takes it instead")
    pure = sum(max(classes[value, True], classes[value, False]) for value in values)
    if pure >= PURE * len(truth):
        return f"each of its {len(values)} values goes with one label: a copy of the label, or known after it"
    return None


def _of_one_class(flags: Sequence[bool], truth: Sequence[bool]) -> bool:
    """Whether the flagged rows are all of one class, where at least LEAST would be of the other by chance."""
    flagged, positive = sum(flags), sum(truth) / len(truth)
    both = sum(flag and true for flag, true in zip(flags, truth, strict=True))
    return (both == 0 and flagged * positive >= LEAST) or (both == flagged and flagged * (1 - positive) >= LEAST)


def skewed(column: Column) -> bool:
    """A mean far above the median, of values that are not negative."""
    ordered = sorted(column.known)
    median, mean = ordered[len(ordered) // 2], sum(ordered) / len(ordered)
    return bool(ordered[0] >= 0 and mean > 2 * max(median, 1e-9) and ordered[-1] > 50)


def _side(column: Column, user: Column | None, item: Column | None) -> tuple[Side, str]:
    """The side of a key that always comes with the same value of the column."""
    keys: tuple[tuple[Side, Column | None], ...] = (("user", user), ("item", item))
    for side, key in keys:
        if column is key:
            return side, f", the {side}"
    for side, key in keys:
        if key is not None and follows(column, key):
            return side, f"; each {side} has one{missing(column)}"
    return "context", ""
