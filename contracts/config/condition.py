"""Conditions of business rules: expressions of Python's own grammar, read by its own parser, of which these are taken:

    category in ("casino", "lottery") and not advertiser == "x"
    1 <= price < 20 or placement != "home"

A name is a column or a field; values are text, numbers, True and False. What has no value equals nothing, is in no list
and in no range: of it `==`, `in` and `<` are false, `!=` and `not in` true.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

LONGEST = 2_000  # characters
Scalar = str | int | float | bool


class Truth(Protocol):
    """A set of items, or a numpy bool."""

    def __and__(self, other: Self, /) -> Self: ...
    def __or__(self, other: Self, /) -> Self: ...
    def __invert__(self) -> Self: ...


Found = TypeVar("Found", bound=Truth)


@dataclass(frozen=True)
class OneOf:
    """The value of `name` is one of `values`."""

    name: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Within:
    """The number of `name` lies between the two, bounds included."""

    name: str
    least: float
    most: float


@dataclass(frozen=True)
class Not:
    part: Condition


@dataclass(frozen=True)
class Every:
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Some:
    parts: tuple[Condition, ...]


Condition = OneOf | Within | Not | Every | Some


def parse(text: str) -> Condition:
    """Raises ValueError with a sentence for what is no condition."""
    if len(text) > LONGEST:
        raise ValueError(f"has {len(text)} characters, at most {LONGEST} are read; make two rules of it")
    try:
        return _condition(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else "too deep"
        raise ValueError(f"{text!r} is no condition ({why}); write one as in category in (\"a\", \"b\") and price < 3"
                         ) from None


def evaluate(
    condition: Condition, one_of: Callable[[str, tuple[Scalar, ...]], Found],
    within: Callable[[str, float, float], Found],
) -> Found:
    """By what two functions say of the comparisons."""
    if isinstance(condition, OneOf):
        return one_of(condition.name, condition.values)
    if isinstance(condition, Within):
        return within(condition.name, condition.least, condition.most)
    if isinstance(condition, Not):
        return ~evaluate(condition.part, one_of, within)
    found = [evaluate(part, one_of, within) for part in condition.parts]
    whole = found[0]
    for part in found[1:]:
        whole = whole & part if isinstance(condition, Every) else whole | part
    return whole


def comparisons(condition: Condition) -> Iterator[OneOf | Within]:
    """All of them, in their order."""
    if isinstance(condition, OneOf | Within):
        yield condition
    for part in (condition.part,) if isinstance(condition, Not) else getattr(condition, "parts", ()):
        yield from comparisons(part)


def _condition(node: ast.expr) -> Condition:
    if isinstance(node, ast.BoolOp):
        parts = tuple(_condition(part) for part in node.values)
        return Every(parts) if isinstance(node.op, ast.And) else Some(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return Not(_condition(node.operand))
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        found = [_compared(left, sign, right) for left, sign, right in zip(sides, node.ops, sides[1:], strict=False)]
        return found[0] if len(found) == 1 else Every(tuple(found))
    raise ValueError(f"{ast.unparse(node)!r} compares nothing; a condition compares columns with values, by ==, !=, "
                     "in, not in, <, <=, > and >=, joined by and, or, not")


def _compared(left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Condition:
    if isinstance(sign, ast.In | ast.NotIn):
        found: Condition = OneOf(_name(left), _list(right))
        return Not(found) if isinstance(sign, ast.NotIn) else found
    turned = not isinstance(left, ast.Name)
    name, value = (_name(right), _scalar(left)) if turned else (_name(left), _scalar(right))
    if isinstance(sign, ast.Eq | ast.NotEq):
        return Not(OneOf(name, (value,))) if isinstance(sign, ast.NotEq) else OneOf(name, (value,))
    if isinstance(value, str | bool) or not isinstance(sign, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        raise ValueError(f"{ast.unparse(left)} and {ast.unparse(right)} have no such order; only numbers have one")
    return _ordered(name, value, below=isinstance(sign, ast.Lt | ast.LtE) != turned,
                    bound=isinstance(sign, ast.LtE | ast.GtE))


def _ordered(name: str, value: float, below: bool, bound: bool) -> Condition:
    """Below or above the value, which counts itself where it is a `bound`."""
    if bound:
        return Within(name, -math.inf, value) if below else Within(name, value, math.inf)
    others = Within(name, value, math.inf) if below else Within(name, -math.inf, value)
    return Every((Within(name, -math.inf, math.inf), Not(others)))


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError(f"{ast.unparse(node)!r} is no name of a column; compare a column with values")


def _list(node: ast.expr) -> tuple[Scalar, ...]:
    if not isinstance(node, ast.Tuple | ast.List | ast.Set) or not node.elts:
        raise ValueError(f"{ast.unparse(node)!r} is no list of values; write it as in (\"a\", \"b\")")
    return tuple(_scalar(one) for one in node.elts)


def _scalar(node: ast.expr) -> Scalar:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and abs(value) < 2**63:  # type: ignore[arg-type, operator]
        return sign * value  # type: ignore[operator, return-value]
    if isinstance(value, str | bool) and sign == 1:
        return value
    raise ValueError(f"{ast.unparse(node)!r} is no value; give text in quotes, a number, True or False")
