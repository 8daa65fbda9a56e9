"""Which column is the label, and which of its values is the positive: guessed from names and values, or as asked.

A log of who took what and when, without a column that is named like a label or a rating, holds positives alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from contracts.errors import DataError
from sluice.init.column_types import Column, quoted

NAMES = re.compile(r"^(label|target|y|class|clicks?|clicked|is_click|clk|converted|conversion|purchased?|bought|buy|"
                   r"churn(ed)?|outcome|response|responded|income|survived|liked?|subscribed|(is_)?fraud)$", re.I)
RATING = re.compile(r"rating|stars|score|grade", re.I)
YES = ("1", "1.0", "yes", "y", "true", "t", "positive", "click", "clicked", "ja", "oui", "si")
MOST_RATINGS, RATING_SHARE = 11, 0.75
OFTEN = 0.05  # of rows that repeat what another says: users take the same items again
CURE = "say which with --label COLUMN, or as Spark SQL, such as --label \"{column} >= 4\""


@dataclass(frozen=True)
class Label:
    """`columns`: what the expression reads, left out of the fields; `rate` of positives in the sample, None unknown.
    Without an expression every row is a positive; `repeat`: users take the same item again."""

    expression: str | None
    columns: frozenset[str]
    rate: float | None
    why: str
    repeat: bool = False


def guess_label(columns: Sequence[Column], wanted: str | None, takes: tuple[Column, Column] | None = None) -> Label:
    """`takes`: the columns of user and item, where the rows tell times, too.

    Raises DataError where no column is a label, or several might be.
    """
    if wanted is not None:
        return _as_asked(columns, wanted)
    two = [column for column in columns if _two_valued(column)]
    named = [column for column in two if NAMES.match(column.plain)]
    if named:
        return _binary(named[0], "its name, and two values")
    ratings = [column for column in columns if RATING.search(column.plain) and _rating(column)]
    if ratings:
        return _threshold(ratings[0])
    if takes is not None:
        return _positives_alone(*takes)
    ends = [column for column in two if column in (columns[-1], columns[0])]
    if ends:
        place = "last" if ends[-1] is columns[-1] else "first"
        return _binary(ends[-1], f"the {place} column, with two values")
    if len(two) == 1:
        return _binary(two[0], "the only column with two values")
    example = CURE.format(column=quoted(next((c.plain for c in columns if c.type == "integer"), columns[-1].plain)))
    if two:
        raise DataError(f"several columns have two values ({', '.join(c.name for c in two)}) and none is named like a "
                        f"label; {example}")
    raise DataError(f"there is no label: no column has exactly two values, and none is named like a rating; {example}")


def _positives_alone(user: Column, item: Column) -> Label:
    pairs = list(zip(user.values, item.values, strict=True))
    again = 1 - len(set(pairs)) / len(pairs)
    why = ("users, items and times, and no column named like a label or a rating: every row is taken as a positive; "
           f"{again:.1%} of the sampled rows are of an item that the user has in another row, too")
    return Label(None, frozenset(), None, why, repeat=again >= OFTEN)


def _as_asked(columns: Sequence[Column], wanted: str) -> Label:
    named = [column for column in columns if wanted in (column.name, column.plain)]
    if not named:
        read = frozenset(column.plain for column in columns if re.search(rf"\b{re.escape(column.plain)}\b", wanted))
        if not read:
            raise DataError(f"--label {wanted!r} is no column and reads none; there are "
                            f"{', '.join(column.plain for column in columns)}")
        return Label(wanted, read, None, "as asked")
    if _two_valued(named[0]):
        return _binary(named[0], "as asked")
    if named[0].type in ("integer", "number"):
        return _threshold(named[0])
    raise DataError(f"--label {wanted!r} has {len(named[0].distinct)} values; give an expression that is true for the "
                    f"positives, such as --label \"{quoted(named[0].plain)} = '{named[0].known[0]}'\"")


def _two_valued(column: Column) -> bool:
    return column.type in ("integer", "number", "boolean", "text") and len(column.distinct) == 2 and _complete(column)


def _complete(column: Column) -> bool:
    return len(column.known) >= 0.995 * len(column.values)


def _rating(column: Column) -> bool:
    return column.type in ("integer", "number") and 3 <= len(column.distinct) <= MOST_RATINGS and _complete(column)


def _binary(column: Column, why: str) -> Label:
    """The positive is the value that says yes, else the larger number, else the rarer one."""
    counts = column.distinct
    positive = next((value for value in counts if str(value).lower() in YES), None)
    if positive is None:
        rarer = min(counts, key=lambda value: (counts[value], str(value)))
        positive = max(counts) if column.type in ("integer", "number") else rarer
        why += f"; taken as positive: {positive!r}, the {'larger' if column.type in ('integer', 'number') else 'rarer'}"
    rate = counts[positive] / len(column.known)
    expression = column.plain if column.type == "boolean" else f"{column.plain} = {_literal(positive)}"
    return Label(expression, frozenset({column.plain}), rate, why)


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "\\'") + "'"


def _threshold(column: Column) -> Label:
    values = sorted(column.distinct)
    aim = values[0] + RATING_SHARE * (values[-1] - values[0])
    least = next(value for value in values if value >= aim - 1e-9)
    least = math.floor(least) if float(least).is_integer() else least
    rate = sum(value >= least for value in column.known) / len(column.known)
    why = f"values from {values[0]} to {values[-1]}; the upper quarter of the range counts as positive"
    return Label(f"{column.plain} >= {least}", frozenset({column.plain}), rate, why)
