r"""Regular expressions of Java as the embedded engine's: classes of ASCII, lines that end as Java's do.

    \d \w \s and . are written out as sets of characters. What the other kind of machine cannot do or means otherwise
    is refused: look-around, back references, \b, \Q..\E, flags, possessive quantifiers.

`$` is the very end of the text for the embedded engine, and for Apache Spark the place before a last newline too.
"""

from __future__ import annotations

import re

_SETS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\x0B\f\r"}
_NO_LINE_END = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_SAME = frozenset("tnrfxuap0PLN") | frozenset(".^$*+?()[]{}|\\/-'\"#&~,;:=<>!@%` _")
_PIECE = re.compile(r"\\.|\(\?:|\(\?|[*+?}]\+|.", re.DOTALL)


def translated(pattern: str) -> str:
    """The same pattern for the embedded engine. Raises ValueError with the piece that has no equal there."""
    pieces, inside = [], False
    for piece in _PIECE.findall(pattern):
        if piece == "[" and not inside:
            inside = True
        elif piece == "]":
            inside = False
        pieces.append(_set(piece, inside))
    return "".join(pieces)


def _set(piece: str, inside: bool) -> str:
    if inside and not piece.startswith("\\"):
        return piece
    if piece == ".":
        return _NO_LINE_END
    if piece in ("(?", "*+", "++", "?+", "}+"):
        raise ValueError(piece)
    if len(piece) == 1 or not piece.startswith("\\"):
        return piece
    letter = piece[1]
    if letter.lower() in _SETS:
        if letter.isupper() and inside:
            raise ValueError(piece)
        chars = _SETS[letter.lower()]
        return chars if inside else f"[{'^' if letter.isupper() else ''}{chars}]"
    if letter not in _SAME:
        raise ValueError(piece)
    return piece
