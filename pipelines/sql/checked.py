"""A user's SQL expression as an engine may run it: rewritten where engines differ, refused where no rewrite is equal.

Apache Spark is the measure: on it every expression runs as it is. On the embedded engine

    1. what differs is refused with the cure, by name (pipelines/sql/differences.py), by arguments, or by the types of
       the columns where these are given (pipelines/sql/typed.py)
    2. what has an equal form is rewritten
    3. a function that has never been compared (pipelines/sql/functions.py) runs with a notice
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from contracts.errors import ConfigError
from pipelines.sql.calls import Call, calls
from pipelines.sql.differences import REFUSED, REWRITTEN, REWRITTEN_OF_NESTED
from pipelines.sql.functions import EQUAL
from pipelines.sql.patterns import translated
from pipelines.sql.typed import Difference, is_plain, with_doubles

Engine = Literal["embedded", "spark"]
_PATTERNS = frozenset(
    ["rlike", "regexp", "regexp_like", "regexp_extract", "regexp_extract_all", "regexp_replace", "regexp_substr",
     "regexp_count", "regexp_instr", "split"])
_PARTS = frozenset(["year", "quarter", "month", "week", "day", "hour", "minute", "second", "dayofmonth", "doy"])
_SYNTAX = frozenset({"cast", "try_cast", "if", "struct", "extract"})
KNOWN = frozenset(EQUAL) | frozenset(REWRITTEN) | _SYNTAX


class Checked(NamedTuple):
    """What to run, and sentences for the user."""

    expression: str
    notices: tuple[str, ...] = ()


def checked(expression: str, engine: Engine, where: str = "", types: Mapping[str, str] | None = None) -> Checked:
    """`types`: column -> Spark's simple type, of the table that the expression reads. `where` begins every sentence.

    Raises ConfigError for what the embedded engine would answer otherwise. An expression that is no SQL is returned as
    it is: the engine says what is wrong with it.
    """
    if engine == "spark":
        return Checked(expression)
    where = f"{where} " if where else ""
    try:
        Spark().tokenize(expression)
    except TokenError:
        return Checked(expression)
    try:
        doubled = with_doubles(expression, types or {})
        for call in calls(expression):
            _refuse(call)
        _refuse_likes(expression)
        rewritten = _with_patterns(_rewritten(doubled, types or {}))
    except Difference as error:
        raise ConfigError(f"{where}{expression!r}: {error}, or set spark.master to local[*]") from None
    strange = sorted({call.name for call in calls(expression)} - KNOWN)
    return Checked(rewritten, tuple(_notice(where, name) for name in strange))


def _notice(where: str, name: str) -> str:
    return (f"{where}calls {name}, which is not among the functions compared on both engines "
            "(docs/reference/sql_functions.md); `sluice features --compare-engines ROWS` compares it on your data")


def _refuse(call: Call) -> None:
    if call.name in REFUSED and not (call.name == "decode" and len(call.arguments) == 2):
        differs, cure = REFUSED[call.name]
        raise Difference(f"{call.name} {differs} on the embedded engine; {cure}")
    if call.name == "split" and len(call.arguments) > 1 and call.arguments[1] in ("''", '""'):
        raise Difference("split at an empty pattern differs on the embedded engine; write a pattern")
    if call.name == "slice" and len(call.arguments) == 3 and call.arguments[1].startswith("-"):
        raise Difference("slice from the end differs on the embedded engine; write reverse(slice(reverse(x), 1, n))")
    if call.name == "from_json" and len(call.arguments) > 1 and "array" in call.arguments[1].lower():
        raise Difference("from_json of arrays differs on the embedded engine where a value does not fit; write "
                         "from_json(text, 'name STRING').name and split that")
    part = _part(call)
    if part is not None and part not in _PARTS:
        raise Difference(f"{call.name} of {part} differs on the embedded engine; write dayofweek(t) or weekday(t)")


def _part(call: Call) -> str | None:
    """Of extract(PART FROM time) and date_part('part', time)."""
    if call.name == "extract" and call.arguments:
        return call.arguments[0].split(None, 1)[0].lower()
    if call.name in ("date_part", "datepart") and call.arguments:
        return call.arguments[0].strip("'\"").lower()
    return None


def _refuse_likes(expression: str) -> None:
    if re.search(r"\bi?like\s+(any|some|all)\b", expression, re.IGNORECASE):
        raise Difference("LIKE ANY is unknown to the embedded engine; write one LIKE a pattern with OR between them")


def _rewritten(text: str, types: Mapping[str, str]) -> str:
    for call in calls(text):
        rewrite = REWRITTEN.get(call.name)
        if call.name in REWRITTEN_OF_NESTED and not any(is_plain(argument, types) for argument in call.arguments):
            rewrite = REWRITTEN_OF_NESTED[call.name]
        new = rewrite([_rewritten(argument, types) for argument in call.arguments]) if rewrite else None
        if new is not None:
            return text[:call.start] + new + _rewritten(text[call.end:], types)
    return text


def _with_patterns(text: str) -> str:
    """Literal patterns as the embedded engine reads them, from the last to the first."""
    tokens = Spark().tokenize(text)
    for token in reversed(_pattern_tokens(text, tokens)):
        try:
            pattern = translated(token.text)
        except ValueError as error:
            raise Difference(f"the pattern {token.text!r} holds {error}, which the embedded engine has not or means "
                             "otherwise; write the characters out, such as [a-z0-9]") from None
        if pattern != token.text:
            escaped = pattern.replace("\\", "\\\\").replace("'", "\\'")
            text = f"{text[:token.start]}'{escaped}'{text[token.end + 1:]}"
    return text


def _pattern_tokens(text: str, tokens: list[Token]) -> list[Token]:
    """Literals after RLIKE and REGEXP, and second arguments of functions that take a pattern."""
    after = {follows.start for token, follows in itertools.pairwise(tokens)
             if token.text.lower() in ("rlike", "regexp")}
    for call in calls(text):
        if call.name in _PATTERNS and len(call.arguments) > 1:
            first = text.index("(", call.start) + 1
            second = text.index(call.arguments[1], text.index(call.arguments[0], first) + len(call.arguments[0]))
            after.add(second)
    literals = [token for token in tokens if token.token_type == TokenType.STRING and token.start in after]
    return sorted(literals, key=lambda token: token.start)
