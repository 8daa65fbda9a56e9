"""What the columns of a file are called in a configuration, and in SQL."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*$")
SQL_WORDS = frozenset(("all", "current_date", "current_time", "current_timestamp", "current_user", "distinct", "false",
                       "localtimestamp", "not", "null", "session_user", "table", "true"))  # are no columns if bare
RESERVED = SQL_WORDS | {"day"}


def plain_names(names: Sequence[str]) -> list[str]:
    """Letters, digits and underscores, different from each other and from RESERVED in any case."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"\W+", "_", without_accents(name), flags=re.ASCII).strip("_") or "column"
        plain = plain if plain[0].isalpha() else f"c_{plain}"
        plain = f"{plain}_" if plain.lower() in RESERVED else plain
        while plain.lower() in {other.lower() for other in found}:
            plain += "_"
        found.append(plain)
    return found


def without_accents(name: str) -> str:
    """Letters without their accents."""
    return unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()


def quoted(name: str) -> str:
    """As Spark SQL names a column."""
    return name if PLAIN.match(name) and name.lower() not in SQL_WORDS else f"`{name.replace('`', '``')}`"
