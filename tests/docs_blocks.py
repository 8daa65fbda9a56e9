"""Fenced blocks of the pages below docs/, so that what the pages show is run by tests."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def blocks(page: str, language: str) -> list[str]:
    """In the order of the page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.S | re.M)


def run(page: str, **names: object) -> None:
    """Executes the Python blocks of a page, one after the other in one namespace."""
    code = "\n".join(blocks(page, "python"))
    exec(compile(code, page, "exec"), {"__name__": "docs", **names})
