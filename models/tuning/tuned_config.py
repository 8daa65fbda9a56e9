"""A configuration's text with other settings in `[train]`; every other line, comments included, stays as it is.

The text is cut into statements: a line, or the lines that TOML needs together (a list over several lines).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from contracts.atomic_write import aside
from contracts.config.config import parse
from contracts.errors import ConfigError

SECTION = "train"
_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")


def write(path: Path, text: str, settings: Mapping[str, object]) -> Path:
    """Returns `path`, whose configuration has the settings."""
    changed = retuned(text, settings) if settings else text
    with aside(path) as draft:
        draft.write_text(changed, encoding="utf-8")
    return path


def retuned(text: str, settings: Mapping[str, object], origin: str = "configuration") -> str:
    """Raises ConfigError where the text does not say afterwards what it ought to: it is then to be edited by hand."""
    wanted = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in wanted.items()]
    kept, place, inline = _without(text, wanted)
    rest = [f"{name} = {_value(value)}\n" for name, value in inline.items() if name not in wanted]
    if place is None:
        kept += ["\n", f"[{SECTION}]\n"]
        place = len(kept)
    changed = "".join([*kept[:place], *lines, *rest, *kept[place:]])
    train = parse(text, origin).train
    expected = type(train).model_validate({**train.model_dump(), **wanted})
    if parse(changed, origin).train != expected:
        raise ConfigError(f"the settings found could not be written into {origin}; set in [{SECTION}] by hand: "
                          + ", ".join(line.strip() for line in lines))
    return changed


def _without(text: str, names: Mapping[str, object]) -> tuple[list[str], int | None, dict[str, object]]:
    """Statements without those of the names; where the section's first line stands; what stood at the top of the file
    as train = {...} or train.x = ..., which is taken out."""
    kept: list[str] = []
    place, inline, section = None, dict[str, object](), ""
    for statement in _statements(text):
        header = _HEADER.match(statement)
        if header:
            section = header[1]
        said = {} if header else tomllib.loads(statement)
        if section == SECTION and said.keys() & names.keys():
            continue
        if not section and SECTION in said:
            inline |= said[SECTION]
            continue
        kept.append(statement)
        if header and section == SECTION:
            place = len(kept)
    return kept, place, inline


def _statements(text: str) -> Iterator[str]:
    pending = ""
    for line in text.splitlines(keepends=True):
        pending += line if line.endswith("\n") else f"{line}\n"
        try:
            tomllib.loads(pending)
        except tomllib.TOMLDecodeError:
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_value(inner)}" for name, inner in value.items()) + " }"
    return json.dumps(value, default=str)
