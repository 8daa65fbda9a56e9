"""How a table is read, as lines of a configuration: path, format, options, schema, what is derived of its columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sluice.init.column_types import Column, missing_mark
from sluice.init.field_guess import GuessedField
from sluice.init.plain_names import quoted
from sluice.table_samples.table_sample import TableSample

WIDTH = 116


def text_value(value: str) -> str:
    """As TOML writes it."""
    return json.dumps(value, ensure_ascii=False)


def comment(text: str) -> str:
    """As many lines of `# ...` as it takes; nothing in the text ends a comment."""
    lines, line = [], "#"
    for word in " ".join(text.split()).split(" "):
        if len(line) + len(word) + 1 > WIDTH and line != "#":
            lines.append(line)
            line = "#"
        line += f" {word}"
    return "\n".join([*lines, line]) + "\n"


def source(
    sample: TableSample, columns: Sequence[Column], fields: Iterable[GuessedField], doubles: Iterable[Column] = (),
    whole: Column | None = None,
) -> list[str]:
    """Lines from `path` to `schema_ddl`. `doubles` are read as numbers besides numeric fields, `whole` as INT."""
    within = f"/{sample.pattern}" if sample.pattern else ""
    lines = [f"path = {text_value('{data}/' + sample.path.name + within)}"]
    if sample.dialect is None:
        return [*lines, f'format = "{sample.format}"']
    inner = ", ".join(f"{key} = {text_value(value)}" for key, value in
                      sample.dialect.options(missing_mark(sample)).items())
    ddl = _ddl(columns, fields, doubles, whole)
    return [*lines, 'format = "csv"', f"options = {{ {inner} }}", f"schema_ddl = {text_value(ddl)}"]


def _ddl(
    columns: Sequence[Column], fields: Iterable[GuessedField], doubles: Iterable[Column], whole: Column | None
) -> str:
    """Numbers are read as DOUBLE where nothing else needs their text."""
    numbers = {field.column.plain for field in fields if field.kind == "numeric" and field.derive is None}
    numbers |= {column.plain for column in doubles if column.type in ("integer", "number")}
    kinds = {
        column.plain: "DOUBLE" if column.plain in numbers and _as_it_is(column) else "STRING" for column in columns
    }
    if whole:
        kinds[whole.plain] = "INT"
    each = {quoted(column.inside or column.name): kinds[column.plain] for column in columns}
    return ", ".join(f"{name} {kind}" for name, kind in each.items())


def _as_it_is(column: Column) -> bool:
    return column.expression is None or column.expression == quoted(column.name)


def derived(
    columns: Sequence[Column], fields: Iterable[GuessedField], used: frozenset[str], parquet: bool,
    numbers: frozenset[str] = frozenset(),
) -> Iterator[tuple[str, str]]:
    """(column, SQL) of every column that is read otherwise than it stands, and of those that fields have of their own;
    `used` are columns that something besides the fields reads, `numbers` those of them that are no keys."""
    fields = list(fields)
    plain = {field.column.plain for field in fields if field.derive is None} | used
    numeric = {field.column.plain for field in fields if field.kind == "numeric" and field.derive is None}
    for column in columns:
        if parquet and column.plain in numeric and column.is_text and _as_it_is(column):
            yield column.plain, f"try_cast({quoted(column.name)} AS DOUBLE)"
        elif column.pointed and column.plain in plain - numeric - numbers:
            yield column.plain, column.key
        elif column.expression is not None and column.type != "time" and column.plain in plain:
            yield column.plain, column.expression
    yield from ((field.name, field.derive) for field in fields if field.derive is not None)


def section(name: str, values: Mapping[str, str]) -> list[str]:
    """Lines of a table of texts, none where it is empty."""
    return ["", f"[{name}]", *(f"{key} = {text_value(value)}" for key, value in values.items())] if values else []
