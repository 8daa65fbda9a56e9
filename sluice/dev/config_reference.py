"""docs/reference/configuration.md, written from the configuration's models: `python -m sluice.dev.config_reference`."""

from __future__ import annotations

import inspect
import json
import types
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from contracts.config.config import Config
from contracts.config.section import Section
from contracts.duration import Duration, label

DURATION = "duration"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"
HEAD = """# The configuration

One TOML file per run. Unknown keys are refused with the nearest right one, and all errors come in one message.
Durations are seconds or text such as "30m", "6h", "7d"; instants are TOML dates or ISO 8601 text, UTC where they name
no zone; `{data}` in a path stands for the folder given with `--data`. This page is written from the configuration's own
models.
"""


def page() -> str:
    """Markdown; sections in the order of the file, each behind the one that holds it."""
    parts = [HEAD, _section("", Config)]
    for path, section in _sections("", Config):
        parts.append(_section(path, section))
    return "\n".join(parts)


def _sections(path: str, section: type[Section]) -> list[tuple[str, type[Section]]]:
    found = []
    for name, info in section.model_fields.items():
        inner = _inner(info.annotation)
        if inner is not None:
            many = get_origin(info.annotation) is tuple
            named = ".NAME" if get_origin(info.annotation) is dict else ""
            where = f"[{path}{name}{named}]" if not many else f"[[{path}{name}]]"
            found += [(where, inner), *_sections(f"{path}{name}.", inner)]
    return found


def _inner(annotation: Any) -> type[Section] | None:
    options = [annotation, *get_args(annotation)]
    return next((one for one in options if isinstance(one, type) and issubclass(one, Section)), None)


def _section(path: str, section: type[Section]) -> str:
    rows = [_row(name, info) for name, info in section.model_fields.items() if path or _inner(info.annotation) is None]
    own = section.__doc__ if section.__doc__ and section is not Config else ""
    table = "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *rows])
    title = f"## `{path}`" if path else "## Top level"
    return "\n\n".join(part for part in (title, _text(own or ""), table) if part) + "\n"


def _text(doc: str) -> str:
    """A docstring as Markdown: indented tables become code blocks."""
    return "\n\n".join(
        f"```\n{block}\n```" if "  " in block.strip().partition("\n")[0] else block
        for block in inspect.cleandoc(doc).split("\n\n")
    ) if doc else ""


def _row(name: str, info: FieldInfo) -> str:
    limits = [text for text in (_limit(one) for one in info.metadata) if text]
    meaning = "; ".join(part for part in [info.description or "", *limits] if part)
    return f"| `{name}` | {_type(_whole(info))} | {_default(info)} | {meaning} |"


def _whole(info: FieldInfo) -> Any:
    """The annotation with the validator that a duration or an instant is read by, which pydantic sets apart."""
    validators = [one for one in info.metadata if isinstance(one, BeforeValidator)]
    return Annotated[info.annotation, validators[0]] if validators else info.annotation


def _limit(rule: Any) -> str:
    signs = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below", "min_length": "not fewer than"}
    for key, sign in signs.items():
        if getattr(rule, key, None) is not None:
            return f"{sign} {getattr(rule, key)}"
    return f"matches `{rule.pattern}`" if getattr(rule, "pattern", None) else ""


def _default(info: FieldInfo) -> str:
    value = info.default
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, Section):
        return "as below"
    if isinstance(value, datetime):
        return f"`{value:%Y-%m-%d}`"
    if value is None:
        return "none"
    if _type(_whole(info)) == DURATION and value:
        return f'`"{label(value)}"`'
    plain = list(value) if isinstance(value, tuple) else value
    return f"`{json.dumps(plain)}`"


def _type(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f'"{value}"' for value in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(_type(one) for one in inner if one is not type(None))
    if origin is tuple:
        each = [one for one in inner if one is not Ellipsis]
        return f"list of {_type(each[0])}" if Ellipsis in inner else f"[{', '.join(_type(one) for one in each)}]"
    if origin is dict:
        return "table"
    if hasattr(annotation, "__metadata__"):
        return DURATION if annotation == Duration else _type(inner[0])
    names = {str: "text", int: "whole number", float: "number", bool: "true or false", datetime: "instant"}
    return names.get(annotation, "section" if _inner(annotation) else str(annotation))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
