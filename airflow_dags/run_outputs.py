"""What the DAGs read of the platform's output: files and keys, each named here and nowhere else.

The standard library alone, so that the platform's own tests can compare the keys with the records behind them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

REGISTRATION = Path("registration") / "summary.json"  # below a run's folder, by `sluice register`
NAME, TAGS, BUNDLE_VERSION = "name", "tags", "bundle_version"
ANSWERED_VERSION = "bundleVersion"  # of an answer that `sluice rank --json` prints


class OutputError(ValueError):
    """The output lacks what the DAGs need of it; made again by the same code it will lack it again."""


class Registered(NamedTuple):
    """The registered model's name, and the bundle's version."""

    name: str
    version: str


def registered(out: Path) -> Registered:
    """What `sluice register` wrote about the run's bundle. Raises OutputError."""
    path = out / REGISTRATION
    if not path.exists():
        raise OutputError(f"{path} is missing: `sluice register` has not run here")
    entry = _object(path.read_text(encoding="utf-8"), str(path))
    tags = entry.get(TAGS)
    version = tags.get(BUNDLE_VERSION) if isinstance(tags, dict) else None
    for key, value in ((NAME, entry.get(NAME)), (f"{TAGS}.{BUNDLE_VERSION}", version)):
        if not isinstance(value, str):
            raise OutputError(f"{path} has no text under {key!r}; was it written by another version of the platform?")
    return Registered(str(entry[NAME]), str(version))


def answered_version(line: str) -> str:
    """The bundle's version in the last line of `sluice rank --json`; an error's line instead of an answer as it is.

    Raises OutputError for an answer without a version.
    """
    if not line.startswith("{"):
        return line
    version = _object(line, "an answer").get(ANSWERED_VERSION)
    if not isinstance(version, str):
        raise OutputError(f"an answer has no {ANSWERED_VERSION!r}: {line[:200]}")
    return version


def _object(text: str, what: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise OutputError(f"{what} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise OutputError(f"{what} holds {type(value).__name__} and no JSON object")
    return value
