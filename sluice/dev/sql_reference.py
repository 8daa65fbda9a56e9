"""docs/reference/sql_functions.md, written from the lists of the check: `python -m sluice.dev.sql_reference`."""

from __future__ import annotations

import textwrap
from pathlib import Path

from pipelines.sql.differences import REFUSED, REWRITTEN, REWRITTEN_OF_NESTED
from pipelines.sql.functions import EQUAL
from pipelines.sql.syntax import SYNTAX

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sql_functions.md"
HEAD = f"""# SQL functions

`derive`, `label.expression` and `windows.test_where` are Spark SQL. On Apache Spark they run as they are. The embedded
engine answers some calls otherwise; such a call is rewritten so that its answer is the same, or refused with what to
write instead. The functions below, and casts and operators in {sum(map(len, SYNTAX.values()))} expressions,
have been compared on both engines, values and types, with nulls, edge values and random ones. A function that is not
here runs with a notice; `sluice features CONFIG --compare-engines ROWS` compares all that a configuration does, on your
own data.

What still differs: where whole numbers overflow, Apache Spark fails and the embedded engine goes on from the other end
(cast to BIGINT before you multiply). Years are 1678 to 2261 for `date_trunc`, `trunc`, `weekofyear`, `months_between`
and comparisons of times with dates; the embedded engine fails beyond. Time zones change their clocks alike until 2037.
`$` in a pattern is the very end of the text, not the place before a last newline.
"""


def page() -> str:
    """Markdown."""
    equal = ", ".join(f"`{name}`" for name in sorted(EQUAL))
    rewritten = ", ".join(f"`{name}`" for name in sorted({*REWRITTEN, *REWRITTEN_OF_NESTED}))
    parts = [HEAD, "## Equal on both engines", _filled(equal), "Of these, rewritten on the embedded engine:",
             _filled(rewritten), "## Refused on the embedded engine",
             "| function | there it | instead |\n|---|---|---|"]
    by_reason: dict[tuple[str, str], list[str]] = {}
    for name, reason in REFUSED.items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {differs} | {cure.replace('|', chr(92) + '|')} |"
            for (differs, cure), names in by_reason.items()]
    return "\n\n".join([*parts[:-1], "\n".join([parts[-1], *rows])]).replace("\n\n\n", "\n\n") + "\n"


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
