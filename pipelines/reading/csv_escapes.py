"""CSV in which quotes have an escape that is not the quote, rewritten so that Arrow reads it as Apache Spark does.

Apache Spark takes an escape for one only inside quotes, before a quote or an escape; elsewhere it is a character like
any other. Arrow takes every escape for one. So those that are characters are doubled. Quotes that are doubled inside
quotes, of which Apache Spark makes raw text in this dialect, are refused. Comments, which Arrow does not know, and
separators of several characters are rewritten here as well.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from contracts.errors import ConfigError

BLOCK = 8 << 20
UNIT = "\x1f"  # ASCII's own separator of fields


class ByteStream(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class OneCharacter:
    """Of a stream of bytes whose fields a longer `separator` divides: the same with UNIT in its place, for Arrow."""

    closed = False

    def __init__(self, stream: ByteStream, separator: str) -> None:
        self._stream, self._separator, self._ready, self._carried = stream, separator.encode(), bytearray(), b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        while not self._ended and (size < 0 or len(self._ready) < size):
            block = self._stream.read(BLOCK)
            self._ended = not block
            text = (self._carried + block).replace(self._separator, UNIT.encode())
            kept = 0 if self._ended else len(self._separator) - 1
            self._carried = text[len(text) - kept :] if kept else b""
            self._ready += text[: len(text) - kept]
        end = len(self._ready) if size < 0 else size
        found = bytes(self._ready[:end])
        del self._ready[:end]
        return found


class _Rewritten:
    """Of a stream of bytes in an encoding that extends ASCII; what Arrow needs of a file. `multiline`: quoted values
    may hold a line's end, so that the text is rewritten as a whole."""

    closed = False

    def __init__(self, stream: ByteStream, multiline: bool) -> None:
        self._stream, self._multiline = stream, multiline
        self._ready, self._carried, self._ended = bytearray(), b"", False

    def read(self, size: int = -1) -> bytes:
        while not self._ended and (size < 0 or len(self._ready) < size):
            self._ready += self._rewritten(self._lines())
        end = len(self._ready) if size < 0 else size
        found = bytes(self._ready[:end])
        del self._ready[:end]
        return found

    def _lines(self) -> bytes:
        """Whole lines, or all there is where a quoted value may hold a line's end."""
        block = b"".join(iter(lambda: self._stream.read(BLOCK), b"")) if self._multiline else self._stream.read(BLOCK)
        self._ended = not block or self._multiline
        text = self._carried + block
        end = len(text) if self._ended else text.rfind(b"\n") + 1
        self._carried = text[end:]
        return text[:end]

    def _rewritten(self, text: bytes) -> bytes:
        raise NotImplementedError


class Uncommented(_Rewritten):
    """Lines that begin with `comment` are empty, so that the others keep their numbers. Not those that begin with a
    quote and the comment's character, which look alike once Arrow has taken the quotes away."""

    def __init__(
        self, stream: ByteStream, comment: str, separator: str, quote: str, escape: str, multiline: bool
    ) -> None:
        super().__init__(stream, multiline)
        q, e, start, mark = (re.escape(part.encode()) for part in (quote, escape, separator, comment))
        quoted = rb"(?:(?<![^\n\r])|(?<=%s))(%s(?:[^%s%s]|%s.|%s%s)*%s)|" % (start, q, q, e, e, q, q, q)
        line = rb"(?<![^\n\r])(?:\xef\xbb\xbf)?%s[^\n\r]*" % mark
        self._mark, self._pattern = comment.encode(), re.compile((quoted if multiline else b"()") + line, re.DOTALL)

    def _rewritten(self, text: bytes) -> bytes:
        return self._pattern.sub(lambda found: found[1] or b"", text) if self._mark in text else text


class EscapedText(_Rewritten):
    """Quoted values whose escapes Arrow reads as Apache Spark does.

    Raises ConfigError on quotes that are doubled inside quotes.
    """

    def __init__(
        self, stream: ByteStream, separator: str, quote: str, escape: str, multiline: bool, where: str
    ) -> None:
        super().__init__(stream, multiline)
        self._quote, self._escape, self._where = quote.encode(), escape.encode(), where
        q, e, start = (re.escape(part.encode()) for part in (quote, escape, separator))
        inside = b"[^%s%s]" % (q, e) if multiline else b"[^%s%s\n]" % (q, e)
        quoted = b"(%s(?:%s|%s.)*%s)(%s)?" % (q, inside, e, q, q)
        self._pattern = re.compile(b"(?:(?<![^\n\r])|(?<=%s))%s|%s" % (start, quoted, e))
        self._character = re.compile(b"%s([%s%s])|%s" % (e, q, e, e))

    def _rewritten(self, text: bytes) -> bytes:
        if self._escape not in text and 2 * self._quote not in text:
            return text
        return self._pattern.sub(self._piece, text)

    def _piece(self, found: re.Match[bytes]) -> bytes:
        quoted: Any = found[1]
        if quoted is None:
            return 2 * self._escape
        if found[2] is not None:
            value = quoted[:40].decode(errors="replace")
            raise ConfigError(f"{self._where}: {value} doubles a quote inside quotes, and the escape is another "
                              "character: say options.escape = '\"' (the quote itself), which every engine reads alike")
        return self._character.sub(lambda one: one[0] if one[1] else 2 * self._escape, quoted)
