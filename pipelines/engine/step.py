"""A step is a named function DataFrame -> DataFrame whose schema is checked on the way in and out; a check raises."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Concatenate, ParamSpec

from pyspark.sql import DataFrame

from contracts.errors import SchemaError
from contracts.nearest import did_you_mean

P = ParamSpec("P")
ANY = "any"


def check_columns(frame: DataFrame, needs: Mapping[str, str], where: str) -> None:
    """`needs` maps a column to its Spark type ("bigint", "array<string>", "any").

    Raises SchemaError naming the place, the column, what was found and what was expected.
    """
    for column, expected in needs.items():
        found = column_type(frame, column, where)
        if expected not in (ANY, found):
            raise SchemaError(f"{where}: column {column!r} is {found}, expected {expected}; cast it there")


def column_type(frame: DataFrame, column: str, where: str) -> str:
    """Spark's name of the column's type. Raises SchemaError with the nearest name when there is no such column."""
    if column not in frame.columns:
        raise SchemaError(f"{where}: column {column!r} is missing{nearest(column, frame.columns)}")
    return frame.schema[column].dataType.simpleString()


def nearest(column: str, columns: Collection[str]) -> str:
    """The end of a sentence about a missing column: those that there are, and the nearest."""
    return f"; found {', '.join(sorted(columns)) or 'no column'}{did_you_mean(column, columns)}"


def step(
    needs: Mapping[str, str], gives: Mapping[str, str]
) -> Callable[[Callable[Concatenate[DataFrame, P], DataFrame]], Callable[Concatenate[DataFrame, P], DataFrame]]:
    """Checks the first argument for `needs` and the result for `gives`; the step's name is the function's."""

    def decorate(
        function: Callable[Concatenate[DataFrame, P], DataFrame],
    ) -> Callable[Concatenate[DataFrame, P], DataFrame]:
        name = function.__name__

        @wraps(function)
        def checked(frame: DataFrame, *args: P.args, **kwargs: P.kwargs) -> DataFrame:
            check_columns(frame, needs, f"input of step {name}")
            result = function(frame, *args, **kwargs)
            check_columns(result, gives, f"output of step {name}")
            return result

        return checked

    return decorate
