"""Label, bid and position that stand as text in Parquet or JSON, read as the numbers that they are."""

from __future__ import annotations

import dataclasses

from sluice.init.column_types import Column
from sluice.init.plain_names import quoted
from sluice.init.role_guess import Guess


def as_numbers(guess: Guess) -> Guess:
    """The same guess, in which each of them is derived; a cell that is no number is missing in its row alone."""
    read = {column.plain: column for column in guess.columns}
    doubles = guess.label.columns | ({guess.bid.plain} if guess.bid else set())
    for column in guess.columns:
        if not (column.is_text and column.type in ("integer", "number") and _as_it_stands(column)):
            continue
        number = f"try_cast({quoted(column.name)} AS DOUBLE)"
        if column is guess.position:
            read[column.plain] = dataclasses.replace(column, expression=f"try_cast({number} AS INT)")
        elif column.plain in doubles:
            read[column.plain] = dataclasses.replace(column, expression=number)
    position, bid = (one and read[one.plain] for one in (guess.position, guess.bid))
    return dataclasses.replace(guess, columns=list(read.values()), position=position, bid=bid)


def _as_it_stands(column: Column) -> bool:
    return column.expression is None or column.expression == quoted(column.name)
