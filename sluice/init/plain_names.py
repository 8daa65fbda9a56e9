"""What the columns of a file are called in a configuration."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence


def plain_names(names: Sequence[str], reserved: frozenset[str]) -> list[str]:
    """Letters, digits and underscores, different from each other and from reserved ones in any case."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"\W+", "_", without_accents(name), flags=re.ASCII).strip("_") or "column"
        plain = plain if plain[0].isalpha() else f"c_{plain}"
        plain = f"{plain}_" if plain.lower() in reserved else plain
        while plain.lower() in {other.lower() for other in found}:
            plain += "_"
        found.append(plain)
    return found


def without_accents(name: str) -> str:
    """Letters without their accents."""
    return unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
