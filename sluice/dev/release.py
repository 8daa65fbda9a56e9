"""Moves the version: `python -m sluice.dev.release 0.2.0` in pyproject.toml, and dates CHANGELOG.md's *Unreleased*."""

from __future__ import annotations

import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path

from contracts.atomic_write import aside
from contracts.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
NUMBER = re.compile(r'(?m)^version = "(\d+)\.(\d+)\.(\d+)"$')
UNRELEASED = "## Unreleased\n"


def current(project: str) -> tuple[int, ...]:
    """The version in the text of pyproject.toml."""
    found = NUMBER.search(project)
    if found is None:
        raise ConfigError("pyproject.toml has no line version = \"X.Y.Z\"")
    return tuple(int(part) for part in found.groups())


def released(project: str, changelog: str, version: str, day: date) -> tuple[str, str]:
    """Both texts of the new version. Raises ConfigError for one that does not come after, or with nothing to say."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version) or tuple(map(int, version.split("."))) <= current(project):
        now = ".".join(map(str, current(project)))
        raise ConfigError(f"{version!r} does not come after {now}; give X.Y.Z that does")
    head, found, rest = changelog.partition(UNRELEASED)
    if not found or not rest.partition("\n## ")[0].strip():
        raise ConfigError("CHANGELOG.md has nothing under *Unreleased*; write what users will see first")
    dated = f"{head}{UNRELEASED}\n## {version} ({day.isoformat()})\n{rest}"
    return NUMBER.sub(f'version = "{version}"', project, count=1), dated


def main(version: str) -> None:
    project, changelog = ROOT / "pyproject.toml", ROOT / "CHANGELOG.md"
    texts = released(project.read_text("utf-8"), changelog.read_text("utf-8"), version, datetime.now(UTC).date())
    for path, text in zip((project, changelog), texts, strict=True):
        with aside(path) as draft:
            draft.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
