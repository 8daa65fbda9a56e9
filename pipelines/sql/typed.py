"""Differences that depend on types: which type branches take, how decimals and floats meet, what a cast writes.

sqlglot finds the types of an expression's parts from those of its columns; a part whose type is unknown is let pass.
A number with a point is a decimal to Spark. Where it meets a double it becomes one: on the embedded engine it is the
double that becomes a decimal of 15 digits, so that such literals are written as doubles there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.expressions import DType as T
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify_columns import qualify_columns

_INTEGERS = (T.TINYINT, T.SMALLINT, T.INT, T.BIGINT)
_FLOATS = (T.FLOAT, T.DOUBLE)
_NUMBERS = (*_INTEGERS, *_FLOATS, T.DECIMAL)
_TIMES = (T.TIMESTAMP, T.TIMESTAMPTZ, T.TIMESTAMPLTZ, T.TIMESTAMPNTZ)
_NESTED = (T.ARRAY, T.MAP, T.STRUCT)
_TEXTS = (T.TEXT, T.VARCHAR, T.CHAR)
_PREFIX = "SELECT "
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Between, exp.In)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_BRANCHED = (exp.If, exp.Case, exp.Coalesce, exp.Greatest, exp.Least)
AS_DOUBLE = "CAST({} AS DOUBLE)"


class Difference(Exception):
    """What the embedded engine answers otherwise, and the cure."""


def with_doubles(expression: str, types: Mapping[str, str]) -> str:
    """The expression with literals written as doubles where they meet doubles. Raises Difference.

    An expression that sqlglot cannot read comes back as it is.
    """
    try:
        tree = _annotated(expression, types)
    except SqlglotError:
        return expression
    literals: set[int] = set()
    for node in tree.walk():
        _refuse(node)
        literals |= {literal.meta["end"] - len(_PREFIX) + 1 for literal in _doubled(node) if "end" in literal.meta}
    for end in sorted(literals, reverse=True):
        expression = f"{expression[:end]}D{expression[end:]}"
    return expression


def is_plain(expression: str, types: Mapping[str, str]) -> bool:
    """Whether its values are known to be neither lists, nor maps, nor structs."""
    try:
        return _kind(_annotated(expression, types).expressions[0]) not in (None, *_NESTED)
    except SqlglotError:
        return False


def _annotated(expression: str, types: Mapping[str, str]) -> exp.Expr:
    """Parsed, with types where they follow from those of the columns."""
    tree = parse_one(f"{_PREFIX}{expression} FROM t", read="spark")
    if not types:
        return annotate_types(tree, dialect="spark")
    schema: dict[str, object] = {"t": {name: _readable(kind) for name, kind in types.items()}}
    qualify_columns(tree, schema, expand_alias_refs=False, expand_stars=False)
    return annotate_types(tree, schema=schema, dialect="spark")


def _text(node: exp.Expr) -> str:
    """As the user may have written it: columns without their table."""
    plain = node.copy()
    for column in plain.find_all(exp.Column):
        column.set("table", None)
    return plain.sql("spark")


def _is_literal(node: exp.Expr) -> bool:
    """A number as it is written, its sign included."""
    return isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal)


def _readable(kind: str) -> str:
    return "string" if kind.startswith(("interval", "variant", "void")) else kind


def _kind(node: exp.Expr | None) -> T | None:
    """The type in Spark, None: unknown."""
    if isinstance(node, exp.Paren | exp.Neg):
        return _kind(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        return _literal_kind(str(node.this))
    if isinstance(node, exp.Div):
        sides = {_kind(node.this), _kind(node.expression)}
        if T.DOUBLE in sides or not sides & {T.DECIMAL, None}:
            return T.DOUBLE
        return T.DECIMAL if T.DECIMAL in sides else None
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        return _common([_kind(node.this), _kind(node.expression)])
    found = node.type.this if node is not None and node.type is not None else None
    return None if found in (T.UNKNOWN, T.NULL) or not isinstance(found, T) else found


def _literal_kind(text: str) -> T:
    if "e" in text.lower():
        return T.DOUBLE
    return T.DECIMAL if "." in text else T.BIGINT if int(text) >= 2**31 else T.INT


def _common(kinds: Sequence[T | None]) -> T | None:
    """The type that numbers of these types share."""
    if any(kind not in _NUMBERS for kind in kinds):
        return None
    if T.DOUBLE in kinds or (T.FLOAT in kinds and set(kinds) != {T.FLOAT}):
        return T.DOUBLE
    for kind in (T.FLOAT, T.DECIMAL, *reversed(_INTEGERS)):
        if kind in kinds:
            return kind
    return None


def _operands(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]]
    if isinstance(node, exp.In):
        return [node.this, *node.expressions]
    if isinstance(node, exp.Case):
        branches = [branch.args["true"] for branch in node.args["ifs"]]
        return [*branches, *([node.args["default"]] if node.args.get("default") else [])]
    if isinstance(node, exp.If):
        return [node.args["true"], *([node.args["false"]] if node.args.get("false") else [])]
    if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
        return [node.this, *node.expressions]
    return [node.this, node.expression]


def _doubled(node: exp.Expr) -> Iterator[exp.Expr]:
    """Decimal literals that meet a double, or, in a comparison, anything but a decimal."""
    if not isinstance(node, (*_COMPARISONS, *_BRANCHED)):
        return
    operands = _operands(node)
    others = {_kind(operand) for operand in operands if not _is_literal(operand)}
    meets = bool(others & {*_FLOATS}) or (isinstance(node, _COMPARISONS) and T.DECIMAL not in others and bool(others))
    for operand in operands:
        literal = operand.this if isinstance(operand, exp.Neg) else operand
        if meets and isinstance(literal, exp.Literal) and _kind(literal) == T.DECIMAL:
            yield literal


def _refuse(node: exp.Expr) -> None:
    if isinstance(node, _BRANCHED) and not (isinstance(node, exp.If) and isinstance(node.parent, exp.Case)):
        _refuse_branches(node)
    elif isinstance(node, _ARITHMETIC):
        _refuse_arithmetic(node)
    elif isinstance(node, _COMPARISONS):
        _refuse_comparison(node)
    elif isinstance(node, exp.Cast):
        _refuse_cast(node)
    elif isinstance(node, exp.Func) and "hash" in _name(node):
        _refuse_hash(node)


def _name(node: exp.Func) -> str:
    return (str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name()).lower()


def _refuse_hash(node: exp.Func) -> None:
    nested = next((part for part in node.iter_expressions() if _kind(part) in _NESTED), None)
    if _name(node) == "hash" and nested is not None:
        raise Difference(f"{_text(node)} hashes no lists or structs on the embedded engine; "
                         f"write xxhash64({_text(nested)})")
    for column in node.find_all(exp.Column, exp.Cast):
        kind = column.type
        if kind is not None and kind.this == T.DECIMAL and kind.expressions and int(kind.expressions[0].name) > 18:
            raise Difference(f"{_text(node)} hashes decimals of over 18 digits otherwise on the embedded engine; "
                             f"write CAST({_text(column)} AS STRING)")


def _refuse_branches(node: exp.Expr) -> None:
    operands = _operands(node)
    kinds = [kind for kind in map(_kind, operands) if kind is not None]
    literal = {_kind(o) for o in operands if _is_literal(o)}
    if T.DOUBLE in kinds and T.DECIMAL in literal:
        kinds = [T.DOUBLE if kind == T.DECIMAL else kind for kind in kinds]  # such literals become doubles
    numeric = set(kinds) & {*_NUMBERS}
    mixed = len(numeric) > 1 and (bool(numeric & {T.FLOAT, T.DECIMAL}) or (
        isinstance(node, exp.If | exp.Case) and _common(kinds) != kinds[0]))
    if mixed:
        what = ", ".join(kind.value for kind in kinds)
        raise Difference(f"{_text(node)} has values of different types ({what}), which take another type on the "
                         f"embedded engine; cast them to one, such as {AS_DOUBLE.format('...')}")


def _refuse_arithmetic(node: exp.Expr) -> None:
    sides = [node.this, node.expression]
    kinds = [_kind(side) for side in sides]
    if None in kinds:
        return
    if T.FLOAT in kinds and set(kinds) != {T.FLOAT} and T.DOUBLE not in kinds:
        raise Difference(f"{_text(node)} is float on the embedded engine and double on Apache Spark; write "
                         f"{AS_DOUBLE.format(_text(sides[kinds.index(T.FLOAT)]))}")
    literal = any(_is_literal(side) and kind == T.DECIMAL for side, kind in zip(sides, kinds, strict=True))
    exact = set(kinds) == {T.DECIMAL} or literal
    if T.DECIMAL in kinds and T.DOUBLE not in kinds and (isinstance(node, exp.Div | exp.Mod) or not exact):
        decimal = _text(sides[kinds.index(T.DECIMAL)])
        raise Difference(
            f"{_text(node)} has other decimals on the embedded engine; write {AS_DOUBLE.format(decimal)}")


def _refuse_comparison(node: exp.Expr) -> None:
    kinds = {_kind(o) for o in _operands(node) if not _is_literal(o)}
    if T.DECIMAL in kinds and kinds & {*_FLOATS}:
        raise Difference(f"{_text(node)} compares a decimal with a double, otherwise on the embedded engine; "
                         "cast the decimal to DOUBLE")


def _refuse_cast(node: exp.Cast) -> None:
    found, wanted = _kind(node.this), node.to.this
    text = _text(node)
    if found in _FLOATS and wanted in _TEXTS:
        raise Difference(f"{text} writes exponents otherwise on the embedded engine; cast to BIGINT first, or write "
                         "format_number(x, 2)")
    if found in _FLOATS and wanted == T.DECIMAL:
        raise Difference(f"{text} rounds otherwise on the embedded engine; keep the double")
    if found in _TEXTS and wanted == T.DECIMAL:
        raise Difference(f"{text} reads no exponents on the embedded engine; cast to DOUBLE, or give it in schema_ddl")
    if found in _TIMES and wanted in _NUMBERS:
        raise Difference(f"{text} rounds times before 1970 otherwise on the embedded engine; write unix_seconds(t) or "
                         "unix_micros(t)")
    if found in _NESTED and wanted in _TEXTS:
        raise Difference(f"{text} writes nulls otherwise on the embedded engine; write to_json or array_join")
