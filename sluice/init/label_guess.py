"""Which column is the label, and which of its values is the positive: guessed from names and values, or as asked.

A log of who took what and when, without a column that is named like a label or a rating, holds positives alone.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.config.log import Log
from contracts.errors import DataError
from sluice.init.clicks import Clicks
from sluice.init.column_types import Column, missing
from sluice.init.follows import follows
from sluice.init.plain_names import quoted

NAMES = re.compile(r"^(label|target|y|class|clicks?|clicked|is_click|clk|converted|conversion|purchased?|bought|buy|"
                   r"churn(ed)?|outcome|response|responded|income|survived|liked?|subscribed|"
                   r"(is_)?(fraud|attributed|booked|churned|default)|default(ed)?|action|installed?|"
                   r"booking_bool|click_bool|deposit|exited|approved)$", re.I)
GENRES = re.compile(r"^(adventure|comedy|drama|horror|romance|thriller)$", re.I)  # beside them "action" is one as well
RATING = re.compile(r"rating|stars|score|grade", re.I)
COUNTED = re.compile(r"clicks?|clk|purchased?|conversion|bought|buy|installed?|liked?", re.I)
RATED = re.compile(r"^(user_?|overall_?|review_?)?(rating|stars|score|grade)s?(_?value)?$", re.I)  # the user's own
YES = ("1", "1.0", "yes", "y", "true", "t", "positive", "click", "clicked", "ja", "oui", "si")
MOST_RATINGS, RATING_SHARE, MOST_NAMED = 11, 0.75, 5
COMPARISON = re.compile(r"\s*(?P<column>`[^`]+`|\w+)\s*(?P<operator>>=|<=|==|!=|<>|=|>|<)\s*"
                        r"('(?P<text>[^']*)'|(?P<number>[+-]?\d+(\.\d+)?))\s*$")
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "=": operator.eq, "!=": operator.ne, "<>": operator.ne,
    ">": operator.gt, "<": operator.lt}
SINGLE_VALUES = ("integer", "number", "boolean", "text")
ASKED = "as asked"
SOME = 0.5  # of rows that tell a label: of fewer it is none
MOST_MISSING: float = Log.model_fields["max_bad_share"].default
OFTEN = 0.05  # of rows that repeat what another says: users take the same items again
CURE = "say which with --label COLUMN, or as Spark SQL, such as --label \"{column} >= 4\""


@dataclass(frozen=True)
class Label:
    """`columns`: what the expression reads, left out of the fields; `rate` of positives in the sample, None unknown.
    `clicks`: a table beside the log tells the positives. Without it and an expression every row is one; `repeat`: users
    take the same item again. `truth` of every sampled row, None where the sample does not tell."""

    expression: str | None
    columns: frozenset[str]
    rate: float | None
    why: str
    repeat: bool = False
    truth: tuple[bool, ...] | None = None
    clicks: Clicks | None = None

    @property
    def positives_alone(self) -> bool:
        return self.expression is None and self.clicks is None


def guess_label(
    columns: Sequence[Column], wanted: str | None, takes: tuple[Column, Column] | None = None,
    rating: Column | None = None, clicks: Clicks | None = None,
) -> Label:
    """`takes`: the columns of user and item, where the rows tell times, too; `rating`: one told by its place; `clicks`:
    what a table beside the log says, which comes after labels and ratings by name.

    Raises DataError where no column is a label, or several might be.
    """
    if wanted is not None:
        return _as_asked(columns, wanted)
    columns = _without_genre(columns)
    two = [column for column in columns if _two_valued(column)]
    named = [column for column in two if NAMES.match(column.plain)]
    if named:
        at_an_end = [column for column in named if column in (columns[-1], columns[0])]
        return _binary((at_an_end[-1:] or named)[0], "its name, and two values")
    ratings = [one for one in columns if one is rating or (RATING.search(one.plain) and is_rating(one))]
    if ratings:
        return _threshold(ratings[0])
    if clicks is not None:
        return _clicked(columns, clicks)
    _check_in_every_row(columns)
    ends = [column for column in two if column in (columns[-1], columns[0])]
    if takes is not None:
        _check_both_classes(column for column in columns if str(next(iter(column.distinct), "")).lower() not in YES)
        return _told_by_numbers(columns, takes) or _positives_alone(*takes, columns, ends[-1:])
    if ends:
        place = "last" if ends[-1] is columns[-1] else "first"
        others = [column for column in two if column is not ends[-1]]
        return _binary(ends[-1], f"the {place} column, with two values{_instead(others)}")
    _check_two_values(columns)
    if len(two) == 1:
        return _binary(two[0], "the only column with two values")
    _check_both_classes(columns)
    if two:
        raise DataError(f"several columns have two values ({', '.join(c.name for c in two)}) and none is named like a "
                        f"label; say which, as in --label {two[-1].plain}")
    example = CURE.format(column=quoted(next((c.plain for c in columns if c.type == "integer"), columns[-1].plain)))
    raise DataError("there is no label: no column has exactly two values, none is named like a rating, and no table of "
                    f"clicks lies beside with times and a key of the rows ([label.clicks]); {example}")


def _told_by_numbers(columns: Iterable[Column], takes: tuple[Column, Column]) -> Label | None:
    """Of a log of who took what: counts, or ratings of many values, or with some missing, which are no user's or item's
    own. Raises DataError where too many are missing; where most are, takes are rated now and then."""
    for column in columns:
        if (column.type not in ("integer", "number") or len(column.distinct) <= 2
                or len(column.known) < SOME * len(column.values) or any(follows(column, key) for key in takes)):
            continue
        if COUNTED.fullmatch(column.plain) and column.type == "integer" and min(column.known) == 0:
            counted = _of_expression(f"{quoted(column.plain)} > 0", [column], frozenset({column.plain}))
            why = f"its name, and counts to {max(column.known)}, of which one and more is positive"
            return dataclasses.replace(counted, why=why + counted.why.removeprefix(ASKED))
        if RATED.match(column.plain):
            return _of_most_rows(_threshold(column), column)
    return None


def _without_genre(columns: Sequence[Column]) -> Sequence[Column]:
    genres = any(GENRES.match(column.plain) for column in columns)
    return [column for column in columns if not (genres and column.plain.lower() == "action")]


def _clicked(columns: Sequence[Column], clicks: Clicks) -> Label:
    truth = clicks.truth(columns)
    window = "an hour" if clicks.window == "1h" else "a day"
    why = (f"{clicks.sample.path.name} beside it holds later events by {', '.join(clicks.on)}: an impression with one "
           f"within {window} is a positive (`window`); --label takes a column instead")
    return Label(None, frozenset(), sum(truth) / len(truth), why, truth=truth, clicks=clicks)


def _check_both_classes(columns: Iterable[Column]) -> None:
    """Raises DataError on a column that is named like a label and has one value."""
    for column in columns:
        if NAMES.match(column.plain) and len(column.distinct) == 1:
            raise DataError(f"{column.name} is named like a label and is {str(column.known[0])!r} in every sampled row "
                            "that has a value: both classes are needed; bring rows of the other one, take the column "
                            "out of the file where it is no label, or say what is, with --label")


def _check_in_every_row(columns: Iterable[Column]) -> None:
    """Raises DataError on a column that is named like a label, has two values, and is missing now and then."""
    for column in columns:
        if NAMES.match(column.plain) and len(column.distinct) == 2 and len(column.known) >= SOME * len(column.values):
            name, positive = quoted(column.plain), _literal(max(column.distinct, key=str))
            raise DataError(f"{column.name} is named like a label and has two values{missing(column)}: such rows are "
                            "neither positive nor negative. Take them out of the file, or say what counts, as in "
                            f"--label \"{name} IS NOT NULL AND {name} = {positive}\", by which they are negative")


def _check_two_values(columns: Sequence[Column]) -> None:
    """Raises DataError on a column that is named like a label and has more values."""
    for column in columns:
        values = sorted(map(str, column.distinct))
        if NAMES.match(column.plain) and 2 < len(values) <= MOST_RATINGS:
            literal = values[-1] if column.type in ("integer", "number") else f"'{values[-1]}'"
            raise DataError(f"{column.name} is named like a label and has {len(values)} values ({', '.join(values)}): "
                            f"say which are positive, as in --label \"{quoted(column.plain)} = {literal}\"")


def _instead(others: Sequence[Column]) -> str:
    """The columns that might be the label as well; "" without any."""
    names = ", ".join(column.name for column in others[:MOST_NAMED]) + (" ..." if len(others) > MOST_NAMED else "")
    return f"; so has {names}: --label NAME takes another" if others else ""


def _positives_alone(user: Column, item: Column, columns: Sequence[Column], two: Sequence[Column]) -> Label:
    pairs = [pair for pair in zip(user.values, item.values, strict=True) if None not in pair]
    again = 1 - len(set(pairs)) / len(pairs)
    named = [column.name for column in columns if NAMES.match(column.plain)]
    but = f" of two values (there is {', '.join(named)})" if named else ""
    why = (f"users, items and times, and no column named like a label or a rating{but}: every row is taken as a "
           f"positive; {again:.1%} of the sampled rows are of an item that the user has in another row, too"
           + "".join(f"; --label {column.name} takes that column of two values instead" for column in two))
    return Label(None, frozenset(), None, why, repeat=again >= OFTEN)


def _as_asked(columns: Sequence[Column], wanted: str) -> Label:
    named = [column for column in columns if wanted in (column.name, column.plain)]
    if not named:
        read = frozenset(column.plain for column in columns if re.search(rf"\b{re.escape(column.plain)}\b", wanted))
        if not read:
            raise DataError(f"--label {wanted!r} is no column and reads none; there are "
                            f"{', '.join(column.plain for column in columns)}")
        return _of_expression(wanted, columns, read)
    column = named[0]
    if len(column.distinct) == 2 and column.type in SINGLE_VALUES:
        return _of_most_rows(_binary(column, ASKED), column)
    if column.type in ("integer", "number"):
        return _of_most_rows(_threshold(column), column)
    raise DataError(f"--label {wanted!r} has {len(column.distinct)} values; give an expression that is true for the "
                    f"positives, such as --label \"{quoted(column.plain)} = '{column.known[0]}'\"")


def _of_expression(wanted: str, columns: Sequence[Column], read: frozenset[str]) -> Label:
    """The truth of `column >= 4` and the like; of any other SQL the sample does not tell."""
    found = COMPARISON.match(wanted)
    column = next((c for c in columns if found and c.plain == found["column"].strip("`")), None)
    if found is None or column is None:
        return Label(wanted, read, None, ASKED)
    limit: Any = found["text"] if found["text"] is not None else float(found["number"])
    compare = OPERATORS[found["operator"]]
    try:
        truth = tuple(value is not None and compare(_comparable(value, limit), limit) for value in column.values)
    except (TypeError, ValueError):
        return Label(wanted, read, None, ASKED)
    rate = sum(truth) / max(len(column.known), 1)
    return _of_most_rows(Label(wanted, read, rate, ASKED, truth=truth), column)


def _of_most_rows(label: Label, column: Column) -> Label:
    """The label, which the column alone tells, with what becomes of rows without a value. Raises DataError where they
    are more than a run takes."""
    rows = missing(column)
    if len(column.values) - len(column.known) > MOST_MISSING * len(column.values):
        raise DataError(f"{label.expression} is neither true nor false where {column.name} has no value{rows}: they go "
                        f"to quarantine, and a run takes {MOST_MISSING:.0%} of its rows there (log.max_bad_share). "
                        "Take them out of the file, or count them as negative: --label "
                        f"\"{quoted(column.plain)} IS NOT NULL AND {label.expression}\"")
    return dataclasses.replace(label, why=f"{label.why}{rows}: they go to quarantine") if rows else label


def _comparable(value: Any, limit: Any) -> Any:
    return str(value) if isinstance(limit, str) else float(value)


def _two_valued(column: Column) -> bool:
    return column.type in SINGLE_VALUES and len(column.distinct) == 2 and _complete(column)


def _complete(column: Column) -> bool:
    return len(column.known) >= 0.995 * len(column.values)


def is_rating(column: Column) -> bool:
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
    truth = tuple(value == positive for value in column.values)
    return Label(expression, frozenset({column.plain}), rate, why, truth=truth)


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "\\'") + "'"


def _threshold(column: Column) -> Label:
    values = sorted(column.distinct)
    aim = values[0] + RATING_SHARE * (values[-1] - values[0])
    least = next(value for value in values if value >= aim - 1e-9)
    least = math.floor(least) if float(least).is_integer() else least
    rate = sum(value >= least for value in column.known) / len(column.known)
    why = f"values from {values[0]} to {values[-1]}; the upper quarter of the range counts as positive"
    truth = tuple(value is not None and value >= least for value in column.values)
    return Label(f"{column.plain} >= {least}", frozenset({column.plain}), rate, why, truth=truth)
