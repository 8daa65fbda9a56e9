"""Code that pages show, so that tests run it or hold it against the commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.S | re.M)
INLINE = re.compile(r"`([^`]+)`")
INDENTED = re.compile(r"(?:^ {4}.*\n?)+", re.M)
COMMAND = re.compile(r"\bsluice ([a-z][a-z_-]*)((?:[ \t][^\n|;&▶]*)?)")


def blocks(page: str, language: str) -> list[str]:
    """Fenced blocks of a language, in the order of the page."""
    return [code for name, code in FENCED.findall((DOCS / page).read_text(encoding="utf-8")) if name == language]


def run(page: str, **names: object) -> None:
    """Executes the Python blocks of a page, one after the other in one namespace."""
    code = "\n".join(blocks(page, "python"))
    exec(compile(code, page, "exec"), {"__name__": "docs", **names})


def shown_code(text: str) -> Iterator[str]:
    """Of Markdown: what is fenced as sh or bash, what is indented, and code within a line.

    A line that ends in a backslash is joined with the next; comments are left out.
    """
    shell = [code for name, code in FENCED.findall(text) if name in ("sh", "bash")]
    prose = FENCED.sub("", text)
    inline = [" ".join(code.split()) for code in INLINE.findall(INDENTED.sub("", prose))]
    for block in [*shell, *INDENTED.findall(prose), *inline]:
        yield re.sub(r"(^|\s)#[^\n]*", "", re.sub(r"\\\n\s*", " ", block))


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """`sluice NAME` and the words behind it, up to a pipe, of the code that a page shows."""
    for code in shown_code(text):
        for name, words in COMMAND.findall(code):
            yield name, words.split()


def headings(text: str) -> set[str]:
    """What a link may name behind its #: headings of the first three levels as GitHub and MyST write them."""
    titles = re.findall(r"^#{1,3} +(.+)$", FENCED.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
