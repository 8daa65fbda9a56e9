"""Which fields read the columns that the label is computed from: they know it by construction."""

from __future__ import annotations

import re

from contracts.config.config import Config

WORD = re.compile(r"`([^`]+)`|\b([A-Za-z_][A-Za-z0-9_]*)\b(?!\s*\()")
KEYWORDS = frozenset((
    "and", "or", "not", "in", "is", "like", "rlike", "ilike", "between", "null", "true", "false", "case", "when",
    "then", "else", "end", "as", "div", "string", "boolean", "tinyint", "smallint", "int", "integer", "bigint",
    "float", "double", "decimal", "date", "timestamp", "binary",
))


def words(expression: str) -> set[str]:
    """Columns that a Spark SQL expression may read: neither text in quotes, nor functions, nor keywords."""
    unquoted = re.sub(r"'(?:[^'\\]|\\.)*'|\"[^\"]*\"", " ", expression)
    names = {quoted or plain for quoted, plain in WORD.findall(unquoted)}
    return {name for name in names if name.lower() not in KEYWORDS}


def fields_of_the_label(config: Config) -> dict[str, str]:
    """Name of a field on the log -> the column that it shares with label.expression, derived columns followed."""
    if config.label.expression is None:
        return {}
    derived = config.log.derive
    read = _sources(words(config.label.expression), derived)
    shared_with: dict[str, str] = {}
    for field in config.fields:
        if field.kind in ("categorical", "numeric", "multi_valued"):
            shared = sorted(_sources({field.source_column}, derived) & read)
            if shared:
                shared_with[field.name] = shared[0]
    return shared_with


def _sources(names: set[str], derived: dict[str, str]) -> set[str]:
    """Raw columns behind the names; a derived column stands for what its expression reads."""
    raw, open_names, seen = set(), set(names), set()
    while open_names:
        name = open_names.pop()
        if name in derived and name not in seen:
            seen.add(name)
            open_names |= words(derived[name])
        else:
            raw.add(name)
    return raw
