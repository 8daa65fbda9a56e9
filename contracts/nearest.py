"""What somebody who wrote an unknown word may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns "; did you mean 'x'?" with the nearest known word, or "" where none is near: the end of a sentence."""
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
