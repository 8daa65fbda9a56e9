"""What somebody who wrote an unknown word may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST = 64  # letters of words that are compared, which takes the product of their lengths


FIRST = 5  # words of one batch that are answered with the nearest one


class Hints:
    """`did_you_mean` for the first few wrong words of a batch: to look for all of thousands would take seconds."""

    def __init__(self, most: int = FIRST) -> None:
        self._left = most

    def __call__(self, word: str, known: Iterable[str]) -> str:
        self._left -= 1
        return did_you_mean(word, known) if self._left >= 0 else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns "; did you mean 'x'?" with the nearest known word, or "" where none is near: the end of a sentence."""
    if len(word) > LONGEST:
        return ""
    close = difflib.get_close_matches(word, sorted(one for one in known if len(one) <= LONGEST), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
