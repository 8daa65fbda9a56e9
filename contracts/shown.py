"""Values of others in messages and logs: short, on one line, without control characters."""

from __future__ import annotations

import re

PASSWORD = re.compile(r"(://[^/@\s]*?):[^/\s]*@")
MOST = 80  # characters of one value


def short(text: str, most: int = MOST) -> str:
    """At most so many characters, the last one an ellipsis where more are left out; what cannot be printed is
    escaped."""
    kept = text[: most + 1]
    if not kept.isprintable():
        kept = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in kept)
    return kept if len(kept) <= most else kept[: most - 1] + "…"


def shown(value: object, most: int = MOST) -> str:
    """As `repr` says it, of at most so many characters."""
    return short(repr(value[: most + 1] if isinstance(value, str | bytes) else value), most)


def without_passwords(text: str) -> str:
    """Addresses as in postgresql://user:secret@host/name keep the user alone."""
    return PASSWORD.sub(r"\1:***@", text)
