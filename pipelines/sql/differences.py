"""Where the embedded engine answers otherwise than Apache Spark: how a call is rewritten, or why it is refused.

A rewrite gives the arguments' texts a form that both engines agree on. A refusal is (what differs, the cure).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Arguments = Sequence[str]
_LAST_DIGIT = "differs from Apache Spark's in the last digit"
_MONOTONE = (_LAST_DIGIT, "leave the column as it is: bins do not change under it, and numeric fields take log = true")
_GEOMETRY = (_LAST_DIGIT, "compute it before the log is written")
_DATE = re.compile(r"(.*)\bAS\s+DATE\s*$", re.IGNORECASE | re.DOTALL)


def _negated_nulls(array: str, value: str) -> str:
    """array_contains: null where the value is not found among elements of which one is null."""
    return (f"CASE WHEN ({array}) IS NULL OR ({value}) IS NULL THEN CAST(null AS BOOLEAN) "
            f"WHEN array_contains({array}, {value}) THEN true "
            f"WHEN exists({array}, _element -> _element IS NULL) THEN CAST(null AS BOOLEAN) ELSE false END")


def _as_date(kind: str) -> Callable[[Arguments], str | None]:
    """CAST(text AS DATE) refuses text with a time or blanks: it is read as a timestamp first."""
    def rewrite(arguments: Arguments) -> str | None:
        found = _DATE.match(arguments[0]) if len(arguments) == 1 else None
        return f"CAST({kind}({found[1]}AS TIMESTAMP) AS DATE)" if found else None
    return rewrite


def _of(count: int, template: str) -> Callable[[Arguments], str | None]:
    """`template` with {0}, {1}...; for calls with so many arguments."""
    return lambda arguments: template.format(*arguments) if len(arguments) == count else None


def _first_of(*rewrites: Callable[[Arguments], str | None]) -> Callable[[Arguments], str | None]:
    return lambda arguments: next((text for rewrite in rewrites if (text := rewrite(arguments)) is not None), None)


_THERE = "filter({0}, _element -> _element IS NOT NULL)"
# name -> the call's new text, None: as it is.
REWRITTEN: dict[str, Callable[[Arguments], str | None]] = {
    "weekday": _of(1, "pmod(dayofweek({0}) + 5, 7)"),
    "isnan": _of(1, "coalesce(isnan({0}), false)"),
    "datediff": _of(2, "CAST(datediff({0}, {1}) AS INT)"),
    "date_diff": _of(2, "CAST(datediff({0}, {1}) AS INT)"),
    "regexp_count": _of(2, "CAST(regexp_count({0}, {1}) AS INT)"),
    "unix_seconds": _of(1, "((unix_micros({0}) - pmod(unix_micros({0}), 1000000L)) div 1000000L)"),
    "unix_millis": _of(1, "((unix_micros({0}) - pmod(unix_micros({0}), 1000L)) div 1000L)"),
    "try_divide": _of(2, "(({0}) / CASE WHEN ({1}) = 0 THEN null ELSE ({1}) END)"),
    "nullif": _of(2, "CASE WHEN ({0}) = ({1}) THEN null ELSE ({0}) END"),
    "timestamp_seconds": _of(1, "timestamp_micros(CAST(({0}) * 1000000L AS BIGINT))"),
    "array_contains": lambda arguments: _negated_nulls(*arguments) if len(arguments) == 2 else None,
    "array_sort": _of(1, f"concat(sort_array({_THERE}), filter({{0}}, _element -> _element IS NULL))"),  # nulls within
    "array_min": _of(1, f"try_element_at(sort_array({_THERE}), 1)"),
    "array_max": _of(1, f"try_element_at(sort_array({_THERE}), -1)"),
    "arrays_overlap": _of(2, "CASE WHEN ({0}) IS NULL OR ({1}) IS NULL THEN CAST(null AS BOOLEAN) "
                             "WHEN size({0}) = 0 OR size({1}) = 0 THEN false ELSE arrays_overlap({0}, {1}) END"),
    "cast": _as_date("CAST"),
    "try_cast": _as_date("TRY_CAST"),
    "date": _of(1, "CAST(CAST({0} AS TIMESTAMP) AS DATE)"),
    "to_date": _of(1, "CAST(CAST({0} AS TIMESTAMP) AS DATE)"),
    "try_to_date": _first_of(_of(1, "CAST(TRY_CAST({0} AS TIMESTAMP) AS DATE)"),
                             _of(2, "CAST(try_to_timestamp({0}, {1}) AS DATE)")),
    "timestamp": _of(1, "CAST({0} AS TIMESTAMP)"),
    "left": _of(2, "left({0}, greatest({1}, 0))"),
}
# The same, but for calls of which an argument is known to be neither a list nor a struct.
REWRITTEN_OF_NESTED: dict[str, Callable[[Arguments], str | None]] = {
    "least": lambda arguments: f"try_element_at(sort_array({_THERE}), 1)".format(f"array({', '.join(arguments)})"),
}
# name -> (what differs, the cure).
REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("ln", "log", "log2", "log10", "log1p", "exp", "expm1"), _MONOTONE),
    "cbrt": _MONOTONE,
    "pow": (_LAST_DIGIT, "write x * x for a square, sqrt(x) for a root"),
    "power": (_LAST_DIGIT, "write x * x for a square, sqrt(x) for a root"),
    **dict.fromkeys(("sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh",
                     "asinh", "acosh", "atanh", "hypot"), _GEOMETRY),
    **dict.fromkeys(("round", "bround", "rint"), (
        "rounds halves otherwise than Apache Spark and has other decimal types",
        "write floor(x + 0.5) for whole numbers, floor(x * 100 + 0.5) / 100 for two digits")),
    **dict.fromkeys(("format_string", "printf"), (
        "rounds otherwise than Apache Spark", "write format_number(x, 2), lpad(text, width, '0') or concat")),
    "initcap": ("ends words elsewhere than Apache Spark", "write lower or upper"),
    "decode": ("takes two arguments alone", "write CASE"),
    "nvl2": ("has the type of another argument than on Apache Spark", "write CASE WHEN x IS NOT NULL THEN ..."),
    "get_json_object": ("reads paths and numbers otherwise", "write from_json(text, 'name STRING').name"),
    "json_array_length": ("answers where Apache Spark has null", "compute it before the log is written"),
    "shiftrightunsigned": ("fails on negative numbers", "write shiftright"),
    "is_valid_utf8": ("is false of null", "leave it out: texts are UTF-8"),
    "timestampdiff": ("counts days otherwise than Apache Spark",
                      "write (unix_micros(b) - unix_micros(a)) div 3600000000L for hours"),
    "quote": ("doubles backslashes", "write concat"),
    "conv": ("is null where Apache Spark reads the digits before the first other character", "write CAST or hex"),
    "to_json": ("writes numbers, times and nulls otherwise", "write array_join, concat or concat_ws"),
    "chr": ("knows characters beyond 255", "write the character"),
    "char": ("knows characters beyond 255", "write the character"),
    "sentences": ("ends words elsewhere than Apache Spark", "write split(text, ' ')"),
    "zip_with": ("is unknown there", "write transform(arrays_zip(a, b), pair -> pair.a + pair.b)"),
    "transform_values": ("is unknown there", "write map_from_arrays(map_keys(m), transform(map_values(m), v -> ...))"),
    "collate": ("is unknown there", "write lower"),
    "input_file_name": ("is unknown there", "keep a column of the file's name"),
    **dict.fromkeys(("rand", "randn", "random", "uuid", "randstr", "shuffle", "monotonically_increasing_id",
                     "spark_partition_id"), ("is another at every run", "write xxhash64(key), which is the same")),
}
