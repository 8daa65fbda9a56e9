"""A configuration file for daily runs of the marketplace: examples/marketplace.toml with other sections in places."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

SOURCE = Path(str(files("sluice"))).parent / "examples" / "marketplace.toml"


def write(target: Path, sections: Mapping[str, Mapping[str, Any]], fields: Collection[str]) -> Path:
    """Keys of `sections`, also inside tables, take the place of the example's; of its fields those named are kept."""
    config = merged(tomllib.loads(SOURCE.read_text(encoding="utf-8")), sections)
    config["fields"] = [field for field in config["fields"] if field["name"] in fields]
    return write_toml(target, config)


def write_toml(target: Path, config: Mapping[str, Any]) -> Path:
    """One line for each top-level key; returns the target."""
    target.write_text("".join(f"{key} = {toml(value)}\n" for key, value in config.items()), encoding="utf-8")
    return target


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of `new` take the place of the old ones, inside tables too; a list is replaced as a whole."""
    both = {key: merged(old[key], new[key]) for key in new if isinstance(old.get(key), dict)}
    return {**old, **new, **both}


def toml(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return value.isoformat() if isinstance(value, date) else json.dumps(value)
